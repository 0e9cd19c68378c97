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

against() # DATA REPEATS NAME KERNEL NAME KERNEL: one line of the table
{
    row "$("$bench" compare "$1" "$2" 1 "$4" 1 "$6" | awk -F '\t' -v OFS='\t' -v a="$3" -v b="$5" '{ print $1, a, $2, b, $4, $6 }')"
}

all() # RULES
{
    gtk="gtk(tree, grammar=$1"
    table "examples${tab}kernel${tab}s${tab}against${tab}s${tab}ratio"
    against "$work/data.jsonl" "$repeats" sst 'sst(tree)' 'fgtk3' "$gtk)"
    against "$work/pairwise.jsonl" 1 'sst pair by pair (ftk)' 'sst(tree, algorithm=ftk)' fgtk2 "$gtk, algorithm=fgtk2)"
    against "$work/pairwise.jsonl" 1 fgtk2 "$gtk, algorithm=fgtk2)" fgtk1 "$gtk, algorithm=fgtk1)"
    against "$work/pairwise.jsonl" 1 fgtk1 "$gtk, algorithm=fgtk1)" gtk "$gtk, algorithm=gtk)"
    against "$work/pairwise.jsonl" 1 fgtk3 "$gtk)" fgtk2 "$gtk, algorithm=fgtk2)"
}

{
    echo "# The grammar-driven kernel"
    echo
    echo "Made by \`bench/run grammar\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)), one thread. Trees: $source. Times are those" \
        "of the whole Gram matrix, of runs that alternate."
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
