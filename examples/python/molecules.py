"""Bayesian optimisation: which molecule should be measured next, if the best one is to be found soon?

The molecules are the photoswitches of Griffiths et al. (2022) where ../shared/data has them; ESPALIER_DATA names
another folder. The aim is the longest wavelength. Otherwise they are put together from pieces, and the aim is made.
"""

import argparse
import csv
import importlib.util
import os
import random
import runpy
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import espalier

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--full", action="store_true", help="twenty runs of 40 measurements, not only five of 20")
parser.add_argument("--picture", metavar="FILE", help="draw there, by matplotlib")
arguments = parser.parse_args()
warnings.simplefilter("ignore", ConvergenceWarning)  # 60 iterations are enough to choose the next molecule
if arguments.picture and not importlib.util.find_spec("matplotlib"):
    parser.error("--picture needs matplotlib: pip install 'espalier-kernels[plot]'")

root, draw = Path(__file__).resolve().parents[2], random.Random(1)
file = Path(os.environ.get("ESPALIER_DATA", root.parent / "shared" / "data")) / "molecules" / "Photoswitch.csv"
if file.exists():
    with file.open(newline="", encoding="utf-8") as lines:
        rows = [(row["SMILES"], row["E isomer pi-pi* wavelength in nm"]) for row in csv.DictReader(lines)]
    smiles, y = zip(*((text, float(value)) for text, value in rows if value), strict=True)
else:
    ends, links = ("C", "O", "N", "Cl", "C#N", "c1ccccc1"), ("C", "CC", "C(=O)", "C(O)", "N", "c1ccc(cc1)")
    smiles = sorted({"".join([*draw.choices(links, k=draw.randint(1, 4)), draw.choice(ends)]) for _ in range(400)})
    y = [text.count("c1") * 3 + text.count("C(=O)N") * 4 - (len(text) / 15) ** 2 for text in smiles]
views = runpy.run_path(str(root / "examples" / "smiles.py"))["views"]
X, y = [views(text) for text in smiles], np.array(y)
print(f"{len(X)} molecules; the best has {y.max():.1f}, the average is {y.mean():.1f}")


def search(seed, steps, guided):
    """The best value after each measurement. The first ten molecules are drawn, and the others, too, unless guided."""
    order = random.Random(seed).sample(range(len(X)), len(X))
    known, rest = order[:10], order[10:]
    best = [y[known].max()]
    for _ in range(steps):
        at = 0
        if guided:
            kernel = "1*norm(ptk(tree)) + 1*norm(seq(tokens, n=5, gap=0))"
            model = espalier.GPRegressor(kernel=kernel, fix="*terminal", prior={"noise": (0.05, 1)}, max_iterations=60)
            mean, std = model.fit([X[i] for i in known], y[known]).predict([X[i] for i in rest], True, latent=True)
            z = (mean - best[-1]) / std
            at = int(np.argmax(std * (z * norm.cdf(z) + norm.pdf(z))))  # the expected improvement
        known.append(rest.pop(at))
        best.append(max(best[-1], y[known[-1]]))
    return best


runs, steps = (20, 40) if arguments.full else (5, 20)
names = {"at random": False, "expected improvement": True}
curves = {name: np.mean([search(i, steps, guided) for i in range(runs)], axis=0) for name, guided in names.items()}
print("measurements after the first ten:" + "".join(f"{step:8}" for step in range(0, steps + 1, steps // 4)))
for name, curve in curves.items():
    print(f"{name + ', best:':33}" + "".join(f"{value:8.1f}" for value in curve[:: steps // 4]))

if arguments.picture:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.2, 2.6), layout="constrained")
    for (name, curve), colour in zip(curves.items(), ("#0072B2", "#D55E00"), strict=True):
        axes.plot(curve, label=name, color=colour)
    axes.axhline(y.max(), color="grey", linestyle=":")
    axes.set(xlabel="measurements after the first ten", ylabel="best value so far")
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(arguments.picture, dpi=80)
