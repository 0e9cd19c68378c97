#!/bin/sh
# Draws docs/img/gram.svg: the Gram matrix of questions from examples/questions.grammar, ordered by kind and wording.
set -eu
cd "$(dirname "$0")/../.."
espalier=${ESPALIER:-build/espalier}
kernel='norm(sst(tree, lambda=0.4))'
each=14
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$espalier" sample --grammar examples/questions.grammar --count 1000 --seed 3 |
    awk -F'"' -v each=$each '++seen[$4] <= each { print }' | LC_ALL=C sort -t '"' -k 4,4 -k 12,12 >"$work/some.jsonl"
awk -F'"' '{ print $4 }' "$work/some.jsonl" >"$work/labels"
# Cells of the same shade that lie side by side are one stroke, and all strokes of one shade are one path.
"$espalier" gram -k "$kernel" "$work/some.jsonl" | awk -v kernel="$kernel" -v each=$each -v labels="$work/labels" '
    BEGIN { levels = 16; left = 52; top = 30; cell = 6; while ((getline line < labels) > 0) label[++n] = line }
    {
        for (i = 1; i <= NF; i++) {
            shade[i] = int($i * levels + 0.5)
            if (i > 1 && shade[i] == shade[i - 1]) length_[i] = length_[i - 1] + 1; else length_[i] = 1
        }
        for (i = 1; i <= NF; i++)
            if (shade[i] > 0 && (i == NF || shade[i + 1] != shade[i]))
                path[shade[i]] = path[shade[i]] "M" i - length_[i] " " NR - 0.5 "h" length_[i]
    }
    END {
        size = n * cell
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", left + size + 70, top + size + 12
        printf "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
        printf "<text x=\"%d\" y=\"18\" font-family=\"monospace\">espalier gram -k &apos;%s&apos;</text>\n", left, kernel
        printf "<g transform=\"translate(%d %d) scale(%d)\" stroke-width=\"1.02\" fill=\"none\">\n", left, top, cell
        printf "<rect width=\"%d\" height=\"%d\" fill=\"#f7f9f4\"/>\n", n, n
        for (s = 1; s <= levels; s++) if (path[s] != "") printf "<path stroke=\"%s\" d=\"%s\"/>\n", colour(s / levels), path[s]
        printf "</g>\n"
        for (k = 0; k * each < n; k++) {
            y = top + (k + 0.5) * each * cell + 4
            printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left - 6, y, label[k * each + 1]
            if (k > 0) {
                at = k * each * cell
                printf "<path d=\"M%d %dh%dM%d %dv%d\" stroke=\"#fff\" stroke-width=\"1.5\"/>\n", left, top + at, size, left + at, top, size
            }
        }
        for (s = 0; s <= levels; s++)
            printf "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"9\" fill=\"%s\"/>\n", left + size + 14, top + (levels - s) * 9, s == 0 ? "#f7f9f4" : colour(s / levels)
        printf "<text x=\"%d\" y=\"%d\">1</text>\n<text x=\"%d\" y=\"%d\">0.5</text>\n<text x=\"%d\" y=\"%d\">0</text>\n</svg>\n", left + size + 33, top + 9, left + size + 33, top + levels / 2 * 9 + 9, left + size + 33, top + levels * 9 + 9
    }
    # From pale leaf to dark wood green.
    function colour(v) { return sprintf("#%02x%02x%02x", 247 - v * 229, 249 - v * 182, 244 - v * 208) }' >docs/img/gram.svg
