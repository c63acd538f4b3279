// Checks a dashboard against Grafana's schemas, and that a typo in it is seen.
//
// usage: node dashboard.mjs NODE_MODULES SCHEMAS DASHBOARD
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const [modules, schemas, path] = process.argv.slice(2);
const Ajv = createRequire(modules + '/')('ajv');
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const checks = new Map();

function faults(name, value, where) {
  if (!checks.has(name)) checks.set(name,
    new Ajv({ allErrors: true, strict: false }).compile(read(`${schemas}/${name}.json`)));
  const check = checks.get(name);
  if (check(value)) return [];
  return check.errors.map((e) => `${where}${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`);
}

function all(dashboard) {
  const panels = dashboard.panels.flatMap((panel) => [
    ...faults(`${panel.type}.options`, panel.options, `${panel.title}: options`),
    ...faults(`${panel.type}.custom`, panel.fieldConfig.defaults.custom, `${panel.title}: custom`),
  ]);
  return [...faults('dashboard', dashboard, 'dashboard'), ...panels];
}

const found = all(read(path));
found.forEach((fault) => console.log('FAILED: ' + fault));
const typos = [(d) => { d.titel = ''; }, (d) => { d.panels[0].gridPos.h = '8'; },
  (d) => { d.panels[0].options.legend.placement = 'top'; },
  (d) => { d.panels[0].fieldConfig.defaults.custom.fillOpacty = 1; }, (d) => { delete d.panels[9].options.color; }];
typos.forEach((typo, i) => {
  const wrong = read(path);
  typo(wrong);
  if (all(wrong).length > 0) return;
  console.log(`FAILED: typo ${i} went unnoticed`);
  found.push('');
});
process.exitCode = found.length > 0 ? 1 : 0;
