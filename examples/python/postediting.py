"""Post-editing time with uncertainty: how long will a person take to correct this translation, and how sure is that?

The sentences are those of WMT 2014, with seconds per word, where ../shared/data has them; ESPALIER_DATA names another
folder. Otherwise they are made: the more clauses lie inside each other, the longer it takes.
"""

import argparse
import importlib.util
import os
import random
from pathlib import Path

import numpy as np

import espalier
import espalier.plot


def make(draw):
    """A sentence, its translation and two features of it, with the seconds."""
    depth, source = draw.randint(1, 8), "(NP (PRP it))"
    for _ in range(depth):
        source = f"(S (NP (PRP {draw.choice(('she', 'he', 'it'))})) (VP (VBZ says) {source}))"
    features = [depth + draw.gauss(0, 2), draw.random()]
    return {"src": source, "tgt": source.replace("says", "dice"), "x": features}, depth + draw.gauss(0, 0.5)


def error(squares):
    """The root of their mean."""
    return f"{np.sqrt(np.mean(squares)):.3f}"


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--full", action="store_true", help="all sentences, not only 300")
parser.add_argument("--picture", metavar="FILE", help="draw there, by matplotlib")
arguments = parser.parse_args()
if arguments.picture and not importlib.util.find_spec("matplotlib"):
    parser.error("--picture needs matplotlib: pip install 'espalier-kernels[plot]'")

draw = random.Random(1)
root = Path(__file__).resolve().parents[2]
file = Path(os.environ.get("ESPALIER_DATA", root.parent / "shared" / "data")) / "quality" / "en-es.jsonl.gz"
if file.exists():
    data = espalier.read(file)
    pairs = list(zip(data, data.target, strict=True))
else:
    pairs = [make(draw) for _ in range(800)]
pairs = draw.sample(pairs, k=len(pairs) if arguments.full else 300)
rows, y = [row for row, _ in pairs], np.array([seconds for _, seconds in pairs])
count = len(rows) * 2 // 3
x = np.array([row["x"] for row in rows])
x = (x - x[:count].mean(axis=0)) / (x[:count].std(axis=0) + 1e-9)  # all features of one scale
rows = [{**row, "x": features} for row, features in zip(rows, x.tolist(), strict=True)]
X, X_test, y, y_test = rows[:count], rows[count:], y[:count], y[count:]
print(f"{count} sentences to learn from, {len(y_test)} to ask; seconds per word: {y.mean():.2f} on average")

trees, features = "1*norm(sst(src)) + 1*norm(sst(tgt))", "1*rbf(x, gamma=0.1)"
print("root mean square error, all | the surer half | the others | within two deviations")
print(f"average  {error((y_test - y.mean()) ** 2):>18}")
kernels = {"features": features, "trees": trees, "both": f"{trees} + {features}"}
for name, kernel in kernels.items():
    fix = [] if name == "features" else ["*.alpha"]  # one parameter for each tree kernel is enough
    model = espalier.GPRegressor(kernel=kernel, fix=fix, max_iterations=50).fit(X, y)
    mean, std = model.predict(X_test, return_std=True)
    squares, surer = (y_test - mean) ** 2, std < np.median(std)
    errors = f"{error(squares):>18} |{error(squares[surer]):>15} |{error(squares[~surer]):>11} |"
    print(f"{name:9}{errors}{np.mean(squares < 4 * std**2):7.0%}")

print("Weights that were learned for both:")
parts = {"source trees": "weight.1", "target trees": "weight.2", "features": "weight.3", "noise": "noise"}
for part, name in parts.items():
    print(f"  {part:12} {model.hyperparameters_[name]:.3f}")

if arguments.picture:
    axes = espalier.plot.gp(None, mean, std**2, y_test)
    axes.set_ylabel("seconds per word")
    axes.figure.set_size_inches(4.8, 3)
    axes.figure.savefig(arguments.picture, dpi=80)
