#!/bin/sh
# The tables of bench/results/grammar.md: the grammar-driven kernel by all its algorithms. See bench/run; PAIRWISE is the
# number of examples that those which go pair by pair are measured on (default: all, which takes some minutes).
program=espalier_bench_ground
. "$(dirname "$0")/common.sh"
out=bench/results/grammar.md
count=10000
pairwise=${PAIRWISE:-$count}

if [ -f "$data/srl/ewt.srl.gz" ]; then
    source='role examples of the English Web Treebank'
    "$build/espalier" srl -q --task role --limit "$count" "$data/srl/ewt.srl.gz" -o "$work/data.jsonl"
else
    echo "bench: no data in $data; sampled questions stand in" >&2
    source='sampled questions'
    "$build/espalier" sample -q --grammar examples/questions.grammar --count "$count" -o "$work/data.jsonl"
fi
head -n "$pairwise" "$work/data.jsonl" >"$work/pairwise.jsonl"
head -n 2500 "$work/data.jsonl" >"$work/few.jsonl" # for many runs: what the algorithms differ by is little

# Paper 003's two sets of rules: as learned, and with optional children added at random.
"$build/espalier" grammar -q --all --column tree --classes penn "$work/data.jsonl" -o "$work/learned.rules"
awk '/->/ { # a generator of its own, as the same numbers are wanted of every awk
        sub(/ # .*/, "")
        line = $1 " ->"
        marks = 0
        for (i = 3; i <= NF; i++) {
            seed = (seed * 16807 + 7) % 2147483647
            if ($i !~ /^\[/ && seed % 100 < 65 && marks < 10) $i = "[" $i "]"
            if ($i ~ /^\[/) marks++
            line = line " " $i
        }
        $0 = line
    } { print }' seed=1 "$work/learned.rules" >"$work/more.rules"

facts() # RULES: rules, those with optional children, optional children per such rule
{
    "$build/espalier" grammar --check "$1" --column tree "$work/data.jsonl" |
        awk -v all="$(grep -c -e ' -> ' "$1")" '{ n[$1] = $2 }
            END { printf "%d rules, %d of them with optional children, %.1f each\n", all, n["rules"], n["optional"] / n["rules"] }'
}

# measure DATA REPEATS NAME KERNEL [NAME KERNEL]...: lines of the table, with the time relative to the first's
measure()
{
    file=$1
    times=$2
    shift 2
    names=
    kernels=
    while [ $# -gt 0 ]; do
        names="$names$1
"
        kernels="$kernels$2
"
        shift 2
    done
    "$bench" effort "$file" "$times" "$kernels" >"$work/effort"
    printf '%s' "$names" | paste "$work/effort" - |
        awk -F '\t' '{ if (NR == 1) first = $2; printf "| %s | %s | %s | %.2f |\n", $1, $3, $2, $2 / first }'
}

all() # RULES
{
    gtk="gtk(tree, grammar=$1"
    table "examples${tab}kernel${tab}s${tab}times the first"
    measure "$work/data.jsonl" "$repeats" sst 'sst(tree)' 'gtk, fgtk3' "$gtk)"
    echo
    table "examples${tab}kernel${tab}s${tab}times the first"
    measure "$work/pairwise.jsonl" 1 'gtk, fgtk3' "$gtk)" 'gtk, fgtk2' "$gtk, algorithm=fgtk2)" \
        'gtk, fgtk1' "$gtk, algorithm=fgtk1)" 'gtk, all variations' "$gtk, algorithm=gtk)" \
        'sst, pair by pair (ftk)' 'sst(tree, algorithm=ftk)'
    echo
    table "examples${tab}kernel${tab}s${tab}times the first"
    measure "$work/few.jsonl" "$repeats" 'gtk, fgtk2' "$gtk, algorithm=fgtk2)" 'gtk, fgtk1' "$gtk, algorithm=fgtk1)" \
        'gtk, all variations' "$gtk, algorithm=gtk)"
}

{
    echo "# The grammar-driven kernel"
    echo
    echo "Made by \`bench/run grammar\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)), one thread. Trees: $source. Times are those" \
        "of the processor for the whole Gram matrix; kernels take turns, the first and the last table of a part show medians of" \
        "$repeats runs. \`fgtk3\` and \`sst\` work on all trees at once, the others pair by pair."
    echo
    echo '## Rules as learned'
    echo
    facts "$work/learned.rules"
    echo
    all "$work/learned.rules"
    echo
    echo '## Optional children added at random'
    echo
    facts "$work/more.rules"
    echo
    all "$work/more.rules"
} | tee "$out"
