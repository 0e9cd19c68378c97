#!/bin/sh
# A short tour: draws 2,000 questions from a grammar, compares their parse trees, and finds each one's neighbours.
set -eu
cd "$(dirname "$0")/.."
espalier=${ESPALIER:-build/espalier}
kernel='norm(sst(tree, lambda=0.4))'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
title() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] || title() { printf '\n== %s\n' "$1"; }

# "label<TAB>words" of each line of JSON Lines; what is too long to read is cut
questions()
{
    sed 's/^{"y": "\([^"]*\)".*"words": "\(.*\)"}$/\1	\2/; s/\\"/"/g' "$1" |
        awk '{ print (length > 96 ? substr($0, 1, 93) "..." : $0) }'
}

"$espalier" sample --grammar examples/questions.grammar --count 2000 --seed 4 -o "$work/all.jsonl"
questions "$work/all.jsonl" >"$work/all.txt"

title '2,000 questions of six kinds, drawn from examples/questions.grammar'
awk -F'\t' '!seen[$1]++ { printf "  %-5s %s\n", $1, $2 }' "$work/all.txt" | sort
printf '  ...and the parse tree of the first one:\n'
sed -n '1s/.*"tree": "\(.*\)", "words".*/\1/p' "$work/all.jsonl" | fold -s -w 100 | sed 's/^/    /'

title "How much structure do two questions share?  $kernel"
head -n 5 "$work/all.jsonl" >"$work/five.jsonl"
"$espalier" gram -k "$kernel" "$work/five.jsonl" |
    awk 'NR == FNR { split($0, part, "\t"); label[NR] = part[1]; words[NR] = part[2]; next }
         { printf "  "; for (i = 1; i <= NF; i++) printf "%7.3f", $i; printf "   %-5s %s\n", label[FNR], words[FNR] }' \
        "$work/all.txt" -

title 'The nearest neighbours of three questions among all 2,000'
for kind in HUM LOC NUM; do grep -m 1 "^{\"y\": \"$kind\"" "$work/all.jsonl"; done >"$work/three.jsonl"
questions "$work/three.jsonl" >"$work/three.txt"
"$espalier" gram -k "$kernel" "$work/three.jsonl" "$work/all.jsonl" | awk -F'\t' '
    FILENAME != "-" { if (FNR == 1) file++; label[file, FNR] = $1; words[file, FNR] = $2; next }
    {
        printf "  %-5s %s\n", label[2, FNR], words[2, FNR]
        split("", used); used[words[2, FNR]] = 1
        for (rank = 1; rank <= 3; rank++) {
            best = 0
            for (i = 1; i <= NF; i++) if (!(words[1, i] in used) && (best == 0 || $i > $best)) best = i
            used[words[1, best]] = 1
            printf "    %.3f  %-5s %s\n", $best, label[1, best], words[1, best]
        }
    }' "$work/all.txt" "$work/three.txt" -

title 'The whole matrix: 2,000 x 2,000 values as a NumPy file'
"$espalier" gram -v -k "$kernel" "$work/all.jsonl" -o "$work/gram.npy" 2>&1 | sed "s|$work/||; s/^/  /"
ls -l "$work/gram.npy" | awk '{ printf "  gram.npy: %.1f MB\n", $5 / 1e6 }'

title 'What to try next'
cat <<END
  $espalier sample --grammar examples/questions.grammar --count 5
  $espalier info YOUR.jsonl             what a data file holds (also .mrg, CoNLL-U, SVM-light-TK, KeLP, LIBSVM)
  $espalier gram -k '$kernel' YOUR.jsonl -o gram.npy
  $espalier info --kernels              the kernels and their parameters
  $espalier help gram                   all about a command
END
