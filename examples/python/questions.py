"""Question types: does a question ask for a person, a place, a number ...? Words alone against parse trees.

The questions are those of TREC (Li and Roth 2002) where ../shared/data has them; ESPALIER_DATA names another folder.
Otherwise they are drawn from examples/questions.grammar by the command-line tool.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import espalier
import espalier.plot

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--full", action="store_true", help="all questions, not only 1,000")
parser.add_argument("--picture", metavar="FILE", help="draw there, by matplotlib")
arguments = parser.parse_args()
if arguments.picture and not importlib.util.find_spec("matplotlib"):
    parser.error("--picture needs matplotlib: pip install 'espalier-kernels[plot]'")

root = Path(__file__).resolve().parents[2]
folder = Path(os.environ.get("ESPALIER_DATA", root.parent / "shared" / "data")) / "questions"
if folder.exists():
    train, test = (espalier.read(folder / f"{part}.jsonl.gz", target="coarse") for part in ("train", "test"))
else:
    tool = os.environ.get("ESPALIER") or shutil.which("espalier") or root / "build" / "espalier"
    sample = [tool, "sample", "--grammar", root / "examples" / "questions.grammar"]
    with tempfile.TemporaryDirectory() as work:
        for name, size, seed in (("train", "5000", "1"), ("test", "500", "2")):
            subprocess.run([*sample, "--count", size, "--seed", seed, "-o", f"{work}/{name}.jsonl"], check=True)
        train, test = (espalier.read(f"{work}/{part}.jsonl") for part in ("train", "test"))

count = len(train) if arguments.full else 1000
X, y = train[:count], train.target[:count]  # a list of dicts, for which kernels name the column they mean
print(f"{count} questions to learn from, {len(test)} to ask, such as")
print(f"  {test.target[0]}: {test[0]['words']}")

kernels = {
    "words": "norm(linear(words))",
    "trees": "norm(sst(tree, lambda=0.4))",
    "both": "norm(sst(tree, lambda=0.4)) + norm(linear(words))",
}
for name, kernel in kernels.items():
    model = espalier.SVC(kernel=kernel, C=10).fit(X, y)
    print(f"accuracy by {name}: {model.score(test, test.target):.3f}")

print("What tells places from the rest:")
miner = espalier.PatternMiner(kernel="fsst(tree, n=3)", positive="LOC", top=5).fit(X, y)
for pattern in miner.patterns_:
    print(f"  {pattern.text}  in {pattern.examples} questions, {pattern.positive} of them about places")

if arguments.picture:
    axes = espalier.plot.confusion(test.target, model.predict(test))
    axes.figure.set_size_inches(4.2, 3.6)
    axes.figure.savefig(arguments.picture, dpi=80)
