// Renders the pages of this repository as a site: each Markdown file that README.md leads to, and what they link to.
//
// usage: node render.mjs ROOT MODULES OUT
//
// Purpose: the site's folders are the repository's, with README.md as index.html, so that links keep their form. Needs
//          markdown-it in MODULES, and mermaid to draw diagrams. Headings get the anchors that they have where Git
//          repositories are shown. search-index.js has the text of every section; nothing is fetched from elsewhere.
// Errors:  a link that leads nowhere, or to a heading that is not there, and a diagram that mermaid can't read are each
//          a line on stderr and exit code 1.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [root, modules, out] = process.argv.slice(2).map((name) => path.resolve(name));
const MarkdownIt = createRequire(path.join(modules, "x"))("markdown-it");
const md = new MarkdownIt({ html: false, linkify: false });
const mermaidFolder = path.join(modules, "mermaid/dist");
const mermaid = fs.existsSync(mermaidFolder)
  ? (await import(pathToFileURL(path.join(mermaidFolder, "mermaid.core.mjs")))).default
  : null;
const fence = md.renderer.rules.fence;
// Without mermaid a diagram stays readable: its text.
md.renderer.rules.fence = (tokens, at, ...rest) =>
  isDiagram(tokens[at]) && mermaid
    ? `<pre class="mermaid">${md.utils.escapeHtml(tokens[at].content)}</pre>\n`
    : fence(tokens, at, ...rest);

const slug = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").trim().replace(/ /g, "-");
const titleOf = (source) => (/^# (.*)$/m.exec(source) ?? [0, "libnccl-net-tcpx"])[1];
const isDiagram = (token) => token.type === "fence" && token.info === "mermaid";
// A Markdown file becomes a page; anything else keeps its name.
const pageOf = (file) => file.replace(/(^|\/)README\.md$/, "$1index.html").replace(/\.md$/, ".html");

// A folder means its README.
function resolved(from, target) {
  const file = path.posix.normalize(path.posix.join(path.posix.dirname(from), target)).replace(/\/$/, "");
  const there = path.join(root, file);
  if (!fs.existsSync(there)) return null;
  return fs.statSync(there).isDirectory() ? path.posix.join(file, "README.md") : file;
}

const pages = new Map(); // file: { tokens, anchors, title }
const copies = new Set();
const faults = [];

function parse(file) {
  const source = fs.readFileSync(path.join(root, file), "utf8");
  const env = {};
  const tokens = md.parse(source, env);
  const anchors = new Set();
  tokens.forEach((token, at) => {
    if (token.type !== "heading_open") return;
    const id = slug(tokens[at + 1].children.map((child) => child.content).join(""));
    token.attrSet("id", id);
    anchors.add(id);
  });
  return { tokens, env, anchors, title: titleOf(source) };
}

const linksOf = (page) =>
  page.tokens.flatMap((token) => (token.children ?? []).filter((child) => child.type === "link_open"));
const picturesOf = (page) =>
  page.tokens.flatMap((token) => (token.children ?? []).filter((child) => child.type === "image"));
const isForeign = (href) => /^\w+:/.test(href);

function collect(file) {
  if (pages.has(file)) return;
  pages.set(file, parse(file));
  for (const link of linksOf(pages.get(file))) {
    const target = link.attrGet("href").split("#")[0];
    if (isForeign(link.attrGet("href")) || !target) continue;
    const leads = resolved(file, target);
    if (leads === null) faults.push(`${file}: ${target} leads nowhere`);
    else if (leads.endsWith(".md")) collect(leads);
    else copies.add(leads);
  }
  // Their own links stay as they are: folders are the same.
  for (const picture of picturesOf(pages.get(file))) {
    const leads = resolved(file, picture.attrGet("src"));
    if (leads === null) faults.push(`${file}: ${picture.attrGet("src")} leads nowhere`);
    else copies.add(leads);
  }
}

function rewrite(file) {
  for (const link of linksOf(pages.get(file))) {
    const href = link.attrGet("href");
    if (isForeign(href)) continue;
    const [target, anchor] = href.split("#");
    const leads = target ? resolved(file, target) : file;
    if (leads === null) continue;
    if (anchor && pages.has(leads) && !pages.get(leads).anchors.has(anchor))
      faults.push(`${file}: ${href}: no such heading`);
    const relative = path.posix.relative(path.posix.dirname(file), pageOf(leads)) || path.posix.basename(pageOf(leads));
    link.attrSet("href", target ? relative + (anchor ? "#" + anchor : "") : "#" + anchor);
  }
}

async function checkDiagrams(file) {
  for (const token of pages.get(file).tokens.filter(isDiagram)) {
    try {
      await mermaid?.parse(token.content);
    } catch (error) {
      faults.push(`${file}: a diagram: ${error.message.replace(/\s+/g, " ")}`);
    }
  }
}

// One entry for each heading, with all text up to the next one.
function sections(file) {
  const page = pages.get(file);
  const found = [];
  let entry = [pageOf(file), page.title, page.title, ""];
  const finish = () => found.push([...entry.slice(0, 3), entry[3].replace(/\s+/g, " ").toLowerCase().trim()]);
  page.tokens.forEach((token, at) => {
    if (token.type === "heading_open") {
      finish();
      const heading = page.tokens[at + 1].children.map((child) => child.content).join("");
      entry = [`${pageOf(file)}#${token.attrGet("id")}`, page.title, heading, ""];
    } else if (token.content) {
      entry[3] += " " + (token.children ?? [token]).map((child) => child.content).join(" ");
    }
  });
  finish();
  return found.filter((each) => each[3]);
}

// The index's own sections and tables, as a list at the side.
function navigation(from) {
  const index = fs.readFileSync(path.join(root, "docs/README.md"), "utf8");
  const here = path.posix.dirname(pageOf(from));
  const entry = (file) => {
    const href = path.posix.relative(here, pageOf(file));
    const current = file === from ? ' aria-current="page"' : "";
    return `<li><a href="${href}"${current}>${md.utils.escapeHtml(pages.get(file).title)}</a>`;
  };
  let text = `<ul>${entry("README.md")}${entry("docs/README.md")}${entry("CHANGELOG.md")}</ul>`;
  for (const section of index.split(/^## /m).slice(1)) {
    const files = [...section.matchAll(/^\| \[([^\]]+\.md)\]/gm)].map((match) => "docs/" + match[1]);
    text += `<h2>${md.utils.escapeHtml(section.split("\n")[0])}</h2><ul>${files.map(entry).join("")}</ul>`;
  }
  return text;
}

function write(file) {
  const page = pages.get(file);
  const target = path.join(out, pageOf(file));
  const top = path.posix.relative(path.posix.dirname(pageOf(file)), "");
  const root = top ? top + "/" : "";
  const draws = mermaid && page.tokens.some(isDiagram);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(
    target,
    `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${md.utils.escapeHtml(page.title)}</title><link rel="stylesheet" href="${root}style.css">
<main>${md.renderer.render(page.tokens, md.options, page.env)}</main>
<nav><input id="search" type="search" placeholder="Search ( / )" aria-label="Search" data-root="${root}">
<ul id="results"></ul>${navigation(file)}</nav>
${draws ? `<script src="${root}mermaid.min.js"></script>` : ""}
<script src="${root}search-index.js"></script><script src="${root}site.js"></script></html>
`,
  );
}

collect("README.md");
for (const file of pages.keys()) rewrite(file);
for (const file of pages.keys()) await checkDiagrams(file);
for (const file of pages.keys()) write(file);
const index = [...pages.keys()].flatMap(sections);
fs.writeFileSync(path.join(out, "search-index.js"), `window.searchIndex = ${JSON.stringify(index)};\n`);
fs.copyFileSync(path.join(root, "docs/site/site.js"), path.join(out, "site.js"));
if (mermaid) fs.copyFileSync(path.join(mermaidFolder, "mermaid.min.js"), path.join(out, "mermaid.min.js"));
for (const file of copies) {
  fs.mkdirSync(path.dirname(path.join(out, file)), { recursive: true });
  fs.copyFileSync(path.join(root, file), path.join(out, file));
}
fs.copyFileSync(path.join(root, "docs/site/style.css"), path.join(out, "style.css"));
faults.forEach((fault) => console.error("site: " + fault));
console.log(`${pages.size} pages, ${index.length} sections, ${copies.size} other files, ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
