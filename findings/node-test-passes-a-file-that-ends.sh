#!/usr/bin/env bash
# Node 26.10.0, `node --test`: a test file whose process ends with exit code 0 before its tests have run counts as one test
# that passed. Of three tests, one of which fails, two are not run, and the summary says `pass 2`, `fail 0`.
#
# What to do: do not take the number of passed tests as a sign that all of them ran. Have each file name its tests in the
# report, or look for the names of the files among the passed tests: such a file stands there by its path.
#
# It needs bash and npm. Exit code 0: it is still so.
set -euo pipefail

version=26.10.0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/work/test"
npm install --loglevel=error --no-audit --no-fund --prefix "$folder/npm" "node@$version"
node="$folder/npm/node_modules/node/bin/node"

echo 'process.exit(0);' > "$folder/work/app.js"
cat > "$folder/work/test/kept.test.js" <<'JS'
const test = require("node:test");
test("kept", () => {});
JS
cat > "$folder/work/test/lost.test.js" <<'JS'
const test = require("node:test");
test("fails", () => { throw new Error("wrong"); });
test("passes", () => {});
require("../app.js");
JS

cd "$folder/work"
"$node" --version
code=0
"$node" --test --test-reporter=tap > "$folder/out" || code=$?
grep -E '^(ok|not ok|# (tests|pass|fail) )' "$folder/out"
echo "exit code $code"
[ "$code" = 0 ]
grep -q '^# pass 2$' "$folder/out"
grep -q '^# fail 0$' "$folder/out"
grep -qE '^ok .* test/lost\.test\.js$' "$folder/out"
