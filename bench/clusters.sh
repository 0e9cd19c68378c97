#!/bin/sh
# The tables of bench/results/clusters.md: --mpi with 1, 2, 4 ... ranks on this machine, one thread each. See bench/run. Needs mpirun
# and the plugin (make mpi). RANKS: the most ranks (default: the processors). TREES: of the Gram matrix (default 16000). EXAMPLES: of
# the support vector machine (default 100000).
program=espalier
. "$(dirname "$0")/common.sh"
out=bench/results/clusters.md
ranks=${RANKS:-$(nproc)}
kernel='norm(sst(tree, lambda=0.4))'
for need in "$build/libespalier-mpi.so:make mpi builds it" "$(command -v mpirun || echo mpirun):Debian has it in openmpi-bin"; do
    [ -e "${need%%:*}" ] || { echo "bench: no ${need%%:*}; ${need#*:}" >&2; exit 1; }
done
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
"$build/espalier" sample -q --grammar examples/questions.grammar --count "${TREES:-16000}" -o "$work/trees.jsonl"
if [ -f "$data/srl/ewt.srl.gz" ]; then
    source='boundary examples of the English Web Treebank'
    "$build/espalier" srl -q --limit "${EXAMPLES:-100000}" "$data/srl/ewt.srl.gz" -o "$work/examples.jsonl"
else
    source='questions sampled from examples/questions.grammar'
    head -n 3000 "$work/trees.jsonl" >"$work/examples.jsonl"
fi

# mpi RANKS ARGUMENT...: what a command says with -v
mpi() { n=$1; shift; mpirun $root --oversubscribe --bind-to none -n "$n" "$build/espalier" "$@" --mpi -v --threads 1 -k "$kernel" 2>&1; }
counts() { n=1; while [ $n -lt "$ranks" ]; do echo $n; n=$((n * 2)); done; echo "$ranks"; }

{
    echo "# Several ranks on one machine"
    echo
    echo "Gram matrix of $(wc -l <"$work/trees.jsonl") questions sampled from examples/questions.grammar, \`$kernel\`:"
    echo
    table "ranks${tab}seconds${tab}busiest rank s${tab}idlest rank s${tab}same bytes"
    for n in $(counts); do
        mpi "$n" gram -o "$work/gram.npy" "$work/trees.jsonl" >"$work/said"
        sum=$(sha256sum <"$work/gram.npy")
        first=${first:-$sum}
        row "$n$tab$(awk -v n="$n" -v same="$([ "$sum" = "$first" ] && echo yes || echo NO)" '
            / parts in / { for (i = 1; i < NF; i++) if ($i == "in") s = $(i + 1); if (s > most) most = s; if (least == "" || s < least) least = s }
            / values in / { for (i = 1; i < NF; i++) if ($i == "in") all = $(i + 1) }
            END { printf "%s\t%s\t%s\t%s", all, most, least, same }' "$work/said")"
    done
    echo
    echo "Support vector machine, $(wc -l <"$work/examples.jsonl") $source, \`--solver folded\`. Work and bytes are those of the rank with the most:"
    echo
    table "ranks${tab}seconds${tab}scores${tab}kernel values${tab}seconds of these${tab}examples held${tab}rank 0 gave MB${tab}rank 0 took MB${tab}another gave MB${tab}same bytes"
    first=
    for n in $(counts); do
        mpi "$n" train --solver folded -o "$work/model" "$work/examples.jsonl" >"$work/said"
        sum=$(sha256sum <"$work/model")
        first=${first:-$sum}
        row "$n$tab$(awk -v same="$([ "$sum" = "$first" ] && echo yes || echo NO)" '
            function larger(a, b) { return a > b ? a : b }
            / trained in / { all = $(NF - 1) }
            / scores and / {
                for (i = 1; i < NF; i++) {
                    if ($(i + 1) == "scores") scores = larger(scores, $i + 0)
                    if ($(i + 1) == "kernel") values = larger(values, $i + 0)
                    if ($i == "in") seconds = larger(seconds, $(i + 1) + 0)
                    if ($(i + 2) == "held;") held = $i
                    if ($i == "gave") gave = $(i + 1)
                    if ($i == "took") took = $(i + 1)
                }
                if (/ rank 0 on /) { first_gave = gave; first_took = took } else other = larger(other, gave + 0)
            }
            END { printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", all, scores, values, seconds, held, first_gave, first_took, other, same }' "$work/said")"
    done
} >"$out"
cat "$out"
