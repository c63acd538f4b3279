// The site's pages: search over all sections, and diagrams.
//
// Purpose: works from a folder of files, without a server or a network. search-index.js, which render.mjs writes, holds
//          one entry for each section: [page, title, heading, text in lower case].
// Errors:  none.

// Sections that have all words, best first: words in a heading count more than in the text.
function findSections(index, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const score = ([, title, heading, text]) => {
    let sum = 0;
    for (const word of words) {
      const inHeading = heading.toLowerCase().includes(word) ? 8 : 0;
      const inTitle = title.toLowerCase().includes(word) ? 4 : 0;
      const times = text.split(word).length - 1;
      if (!inHeading && !inTitle && !times) return 0;
      sum += inHeading + inTitle + Math.min(times, 3);
    }
    return sum;
  };
  const found = index.map((entry) => ({ entry, score: score(entry) })).filter((each) => each.score > 0);
  return found.sort((a, b) => b.score - a.score).slice(0, 20).map((each) => each.entry);
}

function showResults(box, list, root) {
  list.replaceChildren();
  for (const [href, title, heading] of findSections(window.searchIndex, box.value)) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + href;
    link.textContent = heading === title ? title : `${title}: ${heading}`;
    item.append(link);
    list.append(item);
  }
}

if (typeof document !== "undefined") {
  const box = document.getElementById("search");
  const list = document.getElementById("results");
  box.addEventListener("input", () => showResults(box, list, box.dataset.root));
  // The key that opens a search on many sites.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === box) return;
    event.preventDefault();
    box.focus();
  });
  if (window.mermaid) {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    window.mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "default" });
  }
} else {
  globalThis.findSections = findSections; // site_test
}
