# Read by the scripts of bench/run: where things are, and tables. `program` names the one to measure with.
set -eu
cd "$(dirname "$0")/.."
data=${ESPALIER_DATA:-../shared/data}
repeats=${REPEATS:-7}
build=${BUILD:-build}
cmake --build "$build" --target espalier "$program" >/dev/null
bench=$build/$program
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p bench/results

row() { echo "| $* |" | sed 's/	/ | /g'; }
table() { row "$*"; row "$*" | sed 's/[^|]/-/g'; }
tab='	'
