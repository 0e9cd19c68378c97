#!/bin/sh
# The tables of bench/results/online.md: perceptrons on streams of trees. See bench/run. MILLIONS: how many million
# examples the long run takes (default 1; 0: none).
program=espalier_bench_online
. "$(dirname "$0")/common.sh"
out=bench/results/online.md
espalier=$build/espalier
millions=${MILLIONS:-1}
if [ ! -d "$data/srl/propbank" ]; then
    echo "bench: no predicates in $data; the tables of online learning are left out" >&2
    exit 0
fi

# The value of a key in the lines of `espalier info`.
fact() { "$espalier" info "$1" | sed -n "s/^$2$tab//p" | head -n 1; }

learn() { # examples, kernel: a row about one epoch on a stream
    start=$(date +%s.%N)
    "$espalier" srl -q --limit "$1" "$data"/srl/propbank/*.srl.gz |
        /usr/bin/env time -f '%e %M' -o "$work/time" "$espalier" train -q --threads 1 -l perceptron -k "$2" -o "$work/model" -
    read -r seconds kilobytes <"$work/time"
    rate=$(echo "$1 $seconds" | awk '{printf "%.0f", $1 / $2}')
    row "$1${tab}$seconds${tab}$rate${tab}$(fact "$work/model" updates)${tab}$(fact "$work/model" nodes)${tab}$(fact "$work/model" vertices)${tab}$((kilobytes / 1024))"
}

{
    echo "# Online learning"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Learning runs on one thread."
    echo "Data: boundary examples of PropBank (trees without words) by \`espalier srl\`."
    echo
    echo '## Extraction of examples'
    echo
    table "examples${tab}seconds${tab}examples/s${tab}MB/s written"
    for file in "$data/srl/ewt.srl.gz" "$data/srl/propbank/ontonotes_nw.srl.gz"; do
        start=$(date +%s.%N)
        bytes=$("$espalier" srl -q --limit 1000000 "$file" | tee "$work/examples" | wc -c)
        start=$(date +%s.%N)
        "$espalier" srl -q --limit 1000000 "$file" >/dev/null
        end=$(date +%s.%N)
        count=$(wc -l <"$work/examples")
        row "$(echo "$count $start $end $bytes" | awk -v OFS='\t' '{s = $3 - $2; printf "%d\t%.2f\t%.0f\t%.0f", $1, s, $1 / s, $4 / s / 1e6}')"
    done
    rm "$work/examples"
    echo
    for kernel in 'sst(tree, lambda=0.7)' 'sst(tree, lambda=0.7) + poly(x, degree=3)'; do
        echo "## One epoch in three forms: \`$kernel\`"
        echo
        echo 'dag: the annotated DAG and inverted lists; forest: FTK with every tree kept; plain: QTK and dot products pair by pair.' \
            'The memory is that of trees, lists and weights. A ratio is the time of a form through that of dag.'
        echo
        table "examples${tab}updates${tab}nodes kept${tab}vertices${tab}dag s${tab}dag MB${tab}ratio${tab}forest s${tab}forest MB${tab}ratio${tab}plain s${tab}plain MB${tab}ratio"
        for count in 5000 20000 50000; do
            "$espalier" srl -q --limit "$count" "$data"/srl/propbank/*.srl.gz -o "$work/part.jsonl"
            [ "$count" -gt 20000 ] && rounds=1 || rounds=3
            row "$("$bench" forms "$work/part.jsonl" "$kernel" "$rounds" dag forest plain)"
        done
        echo
    done
    [ "$millions" = 0 ] || {
        echo '## A stream of millions'
        echo
        echo '`espalier srl --limit N … | espalier train -l perceptron -k "sst(tree, lambda=0.7) + poly(x, degree=3)" --threads 1 -o MODEL -`,' \
            'one epoch. Extraction runs beside it as a process of its own.'
        echo
        table "examples${tab}seconds${tab}examples/s${tab}updates${tab}nodes kept${tab}vertices${tab}peak memory, MB"
        for n in 100000 "${millions}000000"; do learn "$n" 'sst(tree, lambda=0.7) + poly(x, degree=3)'; done
    }
} | tee "$out"
