"""DNA promoters: where genes start, told by the short motifs that they share, and which motifs these are.

The sequences are those of the UCI repository where ../shared/data has them; ESPALIER_DATA names another folder.
Otherwise they are random, and a motif is planted into half of them.
"""

import argparse
import importlib.util
import os
import random
from pathlib import Path

import numpy as np
from sklearn.model_selection import cross_val_predict

import espalier

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--full", action="store_true", help="ten folds with ten seeds, not only five with one")
parser.add_argument("--picture", metavar="FILE", help="draw there, by matplotlib")
arguments = parser.parse_args()
if arguments.picture and not importlib.util.find_spec("matplotlib"):
    parser.error("--picture needs matplotlib: pip install 'espalier-kernels[plot]'")

root = Path(__file__).resolve().parents[2]
file = Path(os.environ.get("ESPALIER_DATA", root.parent / "shared" / "data")) / "dna" / "promoters.jsonl.gz"
if file.exists():
    data = espalier.read(file)
    X, y = list(data), data.target
else:
    draw = random.Random(1)
    X = ["".join(draw.choices("acgt", k=57)) for _ in range(106)]
    y = np.array(["+", "-"] * 53)
    for i in np.flatnonzero(y == "+"):
        place = draw.randint(33, 38)
        X[i] = X[i][:place] + draw.choice(("tataat", "tatgat", "tacaat")) + X[i][place + 6 :]
    X = [" ".join(sequence) for sequence in X]
print(f"{len(X)} sequences, {np.sum(y == '+')} of them promoters, such as\n  {X[0].replace(' ', '')}")

folds, seeds = (10, 10) if arguments.full else (5, 1)
folded = [espalier.Folds(folds, seed=seed) for seed in range(1, seeds + 1)]
for kernel in "linear", "seq(n=4, gap=0)", "seq(n=6, lambda=0.2)", "fseq(n=4, gap=0, support=2)":
    model = espalier.SVC(kernel=f"norm({kernel})", C=10)
    accuracy = np.mean([cross_val_predict(model, X, y, cv=cv) == y for cv in folded])
    print(f"{kernel:28} accuracy {accuracy:.3f}")

print("Motifs of five bases or more that promoters have:")
miner = espalier.PatternMiner(kernel="fseq(gap=0)", positive="+", max_length=6, min_support=8).fit(X, y)
best = [p for p in miner.patterns_ if len(p.text.split()) >= 5 and p.positive > p.examples / 2][:5]
motifs = [pattern.text.replace(" ", "") for pattern in best]
for motif, pattern in zip(motifs, best, strict=True):
    print(f"  {motif:7} in {pattern.examples} sequences, {pattern.positive} of them promoters")

if arguments.picture:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.2, 2.6), layout="constrained")
    for label, name, colour in (("+", "promoters", "#D55E00"), ("-", "others", "#0072B2")):
        texts = [sequence.replace(" ", "") for sequence, other in zip(X, y, strict=True) if other == label]
        places = [i for text in texts for i in range(len(text)) for motif in motifs if text.startswith(motif, i)]
        axes.hist(places, bins=range(0, 58, 3), alpha=0.7, label=name, color=colour)
    axes.set(xlabel="place in the sequence", ylabel="motifs found")
    axes.legend(loc="upper center", frameon=False)
    figure.savefig(arguments.picture, dpi=80)
