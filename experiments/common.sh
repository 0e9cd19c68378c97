# Read by the experiments: where things are, their size, and what an interrupted run had computed.
#     experiments/NAME [--full] [ARGUMENT]...
# An experiment prints Markdown tables on standard output and progress on standard error. A line `== PART` before a table gives it a
# name of its own: it goes to the place NAME.PART of docs/results.md, one without such a line to the place NAME. A PART that ends in
# `time` differs from run to run, nothing else does. Curves go to $WORK/*.tsv. Environment: ESPALIER_DATA (default ../shared/data),
# BUILD (default build), WORK (a folder to keep examples, models and figures in; default: temporary).
# shellcheck shell=bash disable=SC2034 # read by those who read this
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."
data=$(cd "${ESPALIER_DATA:-../shared/data}" && pwd)
build=$(cd "${BUILD:-build}" && pwd)
espalier=$build/espalier
tab=$(printf '\t')
full=
if [ "${1:-}" = --full ]; then full=yes; shift; fi
if [ -n "${WORK:-}" ]; then mkdir -p "$WORK"; else WORK=$(mktemp -d); trap 'rm -rf "$WORK"' EXIT; fi
WORK=$(cd "$WORK" && pwd)

say() { echo "$(basename "$0"): $*" >&2; }

# What the command prints; kept under this name, so that nothing is computed twice.
kept() # NAME COMMAND...
{
    local place
    place=$WORK/kept/$(printf '%s' "$1" | tr -c 'a-zA-Z0-9=.,+*-' _)
    if [ ! -f "$place" ]; then
        mkdir -p "$WORK/kept"
        say "$1"
        "${@:2}" >"$place.new"
        mv "$place.new" "$place"
    fi
    cat "$place"
}

# Makes a file by a command that writes to standard output, unless it is there.
make_file() # FILE COMMAND...
{
    [ ! -f "$1" ] || return 0
    "${@:2}" >"$1.new"
    mv "$1.new" "$1"
}

# Runs a command and prints what it took: seconds of the processor, seconds passed, and megabytes at its peak, with TABs.
measure() # COMMAND...
{
    local TIMEFORMAT='%3U %3S %3R'
    { time env time -q -f %M -o "$WORK/peak" "$@" >&3 2>&3; } 3>&2 2>"$WORK/taken"
    paste -d ' ' "$WORK/taken" "$WORK/peak" | awk '{ printf "%.3f\t%.3f\t%.1f\n", $1 + $2, $3, $4 / 1024 }'
}

# Of srl's features (column x, the last), those of Gildea and Jurafsky (2002): phrase type, predicate, head word, governing
# category, position, voice and path.
standard_features()
{
    awk '{
        at = index($0, "\"x\": {") + 5
        rest = substr($0, at + 1)
        sub(/\}\}$/, "", rest)
        n = split(rest, feature, ", ")
        out = ""
        for (i = 1; i <= n; i++)
            if (feature[i] ~ /^"(pt|pl|hw|gov|pos|voice|path)=/) out = out (out == "" ? "" : ", ") feature[i]
        print substr($0, 1, at) out "}}" }'
}

# Numbers in column x, the last, to mean 0 and variance 1 over all lines.
standardised_features()
{
    awk '{ at = index($0, "\"x\": ["); head[NR] = substr($0, 1, at + 5); tail = substr($0, at + 6); sub(/\].*/, "", tail)
           m = split(tail, v, ", "); for (i = 1; i <= m; i++) { x[NR, i] = v[i]; sum[i] += v[i]; square[i] += v[i] * v[i] } }
         END { for (r = 1; r <= NR; r++) {
                   line = head[r]
                   for (i = 1; i <= m; i++) { mean = sum[i] / NR; sd = sqrt(square[i] / NR - mean * mean)
                       line = line (i > 1 ? ", " : "") sprintf("%.9g", sd > 0 ? (x[r, i] - mean) / sd : 0) }
                   print line "]}" } }'
}
