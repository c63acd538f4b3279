#!/bin/bash
# dashboard_test: deploy/grafana/tcpx.json against Grafana's own schema: the types of npm's @grafana/schema, turned into
#                 a
# JSON schema that allows no other members, of the dashboard and of each kind of panel that is in it. On demand, after
# tools/setup --deploy. What its queries bring is prometheus_test's.
#
# usage: dashboard_test.sh WORKSPACE
set -euo pipefail

root=$(dirname "$(realpath "$1")")
modules=${TCPX_NODE_MODULES:-$(getent passwd "$(id -u)" | cut -d: -f6)/.cache/tcpx-tools/grafana/node_modules}
[[ -x $modules/.bin/ts-json-schema-generator ]] ||
  { echo "SKIPPED: nothing to check with (tools/setup --deploy)"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# schema NAME FILE TYPE
schema() {
  "$modules/.bin/ts-json-schema-generator" --no-type-check --tsconfig "$scratch/tsconfig.json" --type "$3" \
    --path "$modules/@grafana/schema/dist/types/raw/$2/x/types.gen.d.ts" --out "$scratch/$1.json"
}

echo '{"compilerOptions": {"skipLibCheck": true, "module": "esnext", "moduleResolution": "bundler"}}' >"$scratch/tsconfig.json"
schema dashboard dashboard Dashboard
for kind in timeseries heatmap; do
  schema "$kind.options" "composable/$kind/panelcfg" Options
  schema "$kind.custom" "composable/$kind/panelcfg" FieldConfig
done

node "$root/tests/deploy/dashboard.mjs" "$modules" "$scratch" "$root/deploy/grafana/tcpx.json"
echo "passed: the dashboard is what @grafana/schema $(sed -n 's/^  "version": "\(.*\)",/\1/p' \
  "$modules/@grafana/schema/package.json") says that one is"
