#!/bin/sh
# A short tour: draws questions from a grammar, learns their kinds from the parse trees, and explains what it predicts.
set -eu
cd "$(dirname "$0")/.."
espalier=${ESPALIER:-build/espalier}
model=${DEMO_MODEL:-build/demo.model}
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

# what a command says, without what it prints
said()
{
    "$@" 2>"$work/log" >/dev/null || { cat "$work/log" >&2; exit 1; }
    sed "s|$work/||; s/^/  /" "$work/log"
}

"$espalier" sample --grammar examples/questions.grammar --count 2000 --seed 4 -o "$work/train.jsonl"
"$espalier" sample --grammar examples/questions.grammar --count 500 --seed 5 -o "$work/test.jsonl"
questions "$work/train.jsonl" >"$work/train.txt"
questions "$work/test.jsonl" >"$work/test.txt"

title '2,000 questions of six kinds to learn from, drawn from examples/questions.grammar'
awk -F'\t' '!seen[$1]++ { printf "  %-5s %s\n", $1, $2 }' "$work/train.txt" | sort
printf '  ...and the parse tree of the first one:\n'
sed -n '1s/.*"tree": "\(.*\)", "words".*/\1/p' "$work/train.jsonl" | fold -s -w 100 | sed 's/^/    /'

title "Which values are best?  tune --grid C=1,10,100 --grid lambda=0.2,0.4"
said "$espalier" tune -k 'norm(sst(tree))' --grid C=1,10,100 --grid lambda=0.2,0.4 --folds 4 "$work/train.jsonl"

title "A support vector machine on the trees, with these:  train -k '$kernel' -C 100"
said "$espalier" train -k "$kernel" -C 100 -o "$model" "$work/train.jsonl"

title 'What it says about 500 questions it has not seen:  predict'
said "$espalier" predict "$model" "$work/test.jsonl" -o "$work/out.txt"

title 'Three of these predictions, explained by the nearest questions that it learned from'
cut -f 1 "$work/out.txt" | paste - "$work/test.txt" "$work/test.jsonl" | awk -F'\t' 'length($3) < 75' >"$work/all.txt"
{
    awk -F'\t' '$1 == $2 && $2 == "HUM"' "$work/all.txt" | head -n 1
    awk -F'\t' '$1 == $2 && $2 == "NUM"' "$work/all.txt" | head -n 1
    awk -F'\t' '$1 != $2' "$work/all.txt" | head -n 1
} >"$work/three.txt"
cut -f 4- "$work/three.txt" >"$work/three.jsonl"
"$espalier" gram -k "$kernel" "$work/three.jsonl" "$work/train.jsonl" | awk -F'\t' '
    FILENAME != "-" && FNR == 1 { file++ }
    FILENAME != "-" && file == 1 { label[FNR] = $1; words[FNR] = $2; next }
    FILENAME != "-" { said[FNR] = $1; meant[FNR] = $2; text[FNR] = $3; next }
    {
        printf "  %s\n    predicted %s, %s\n", text[FNR], said[FNR], said[FNR] == meant[FNR] ? "right" : "but it is " meant[FNR]
        split("", used)
        for (rank = 1; rank <= 3; rank++) {
            best = 0
            for (i = 1; i <= NF; i++) if (!(words[i] in used) && (best == 0 || $i > $best)) best = i
            used[words[best]] = 1
            printf "      %.3f  %-5s %s\n", $best, label[best], words[best]
        }
    }' "$work/train.txt" "$work/three.txt" -

title 'What to try next'
cat <<END
  $espalier info $model                 the model of this demo
  $espalier train -k '$kernel' -C 100 -o my.model YOUR.jsonl
  $espalier predict my.model NEW.jsonl          (also SVM-light-TK, KeLP, LIBSVM, Penn trees, CoNLL-U)
  $espalier cv -k '$kernel' YOUR.jsonl
  $espalier help train                  all about a command
END
