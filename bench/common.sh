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

# programs TREES NODES: random trees in the shape of parsed programs: few labels for what is done, many for names, blocks of many
# statements.
programs()
{
    awk -v trees="$1" -v nodes="$2" '
    function draw(n) { state = state * 16807 % 2147483647; return state % n }
    function expression(size) {
        if (size < 3) return draw(3) ? "(Name n" draw(draw(4) ? 20 : 400) ")" : "(Number " draw(10) ")"
        if (draw(3)) { left = 1 + draw(size - 2); return binary(size - 1 - left, left) }
        return call(size)
    }
    function binary(a, b,  one) { one = expression(a); return "(Binary (Op " substr("+-*/<=", 1 + draw(6), 1) ") " one " " expression(b) ")" }
    function call(size,  text, part) {
        text = "(Call (Name f" draw(60) ")"
        for (size -= 2; size > 0; size -= part) { part = 1 + draw(size < 6 ? size : 6); text = text " " expression(part) }
        return text ")"
    }
    function statement(size,  kind, text) {
        kind = size < 20 ? draw(3) : draw(9)
        if (kind == 0) return call(size)
        if (kind == 1) return "(Return " expression(size - 1) ")"
        if (kind < 6) return "(Assign (Name n" draw(40) ") " expression(size < 20 ? size - 2 : 12) ")" (size < 40 ? "" : " " block(size - 20))
        text = kind < 8 ? "(If " : "(While "
        text = text expression(5)
        if (kind == 6 && size > 40) { text = text " " block(size / 2 - 6); size = int(size / 2) }
        return text " " block(size - 6) ")"
    }
    function block(size,  text, part) {
        text = "(Block"
        for (size = int(size - 1); size > 3; size -= part) { part = 4 + draw(size < 60 ? size : 60); text = text " " statement(part) }
        return text " (End end))"
    }
    BEGIN { state = 12345; for (i = 0; i < trees; i++) print "(Function (Name f" draw(60) ") " block(nodes) ")" }'
}
