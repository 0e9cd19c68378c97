"""XML documents: their sources told apart by markup alone, without a word of text.

The documents are structure trees of INEX 2005 in eleven classes where ../shared/data has them; ESPALIER_DATA names
another folder. Otherwise they are small documents of three sources, made here.
"""

import argparse
import importlib.util
import os
import random
import time
from pathlib import Path
from xml.etree import ElementTree

import espalier
import espalier.plot


def make(source, draw):
    """A document with the habits of its source, and some of those of the others."""
    document = ElementTree.Element("document")
    ElementTree.SubElement(document, "title").text = "Trees"
    for _ in range(draw.randint(1, 5)):
        section = ElementTree.SubElement(document, "section")
        for _ in range(draw.randint(1, 4)):
            habit = source if draw.random() < 0.7 else draw.choice(("shop", "paper", "recipe"))
            if habit == "shop":
                ElementTree.SubElement(ElementTree.SubElement(section, "item"), "price").text = "9.99"
            elif habit == "paper":
                ElementTree.SubElement(ElementTree.SubElement(section, "p"), "cite").text = "[1]"
            else:
                ElementTree.SubElement(ElementTree.SubElement(section, "list"), "item").text = "flour"
    return document


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--full", action="store_true", help="all documents, not only 800 and 400")
parser.add_argument("--picture", metavar="FILE", help="draw there, by matplotlib")
arguments = parser.parse_args()
if arguments.picture and not importlib.util.find_spec("matplotlib"):
    parser.error("--picture needs matplotlib: pip install 'espalier-kernels[plot]'")

draw = random.Random(1)
root = Path(__file__).resolve().parents[2]
folder = Path(os.environ.get("ESPALIER_DATA", root.parent / "shared" / "data")) / "xml"
if folder.exists():
    data = [espalier.read(folder / f"inex2005.{part}.jsonl.gz") for part in ("train", "test")]
    parts = [list(zip(part, part.target, strict=True)) for part in data]
else:
    labels = draw.choices(("shop", "paper", "recipe"), k=1200)
    pairs = [(espalier.tree(make(label, draw)), label) for label in labels]
    parts = [pairs[:800], pairs[800:]]
if not arguments.full:
    parts = [draw.sample(parts[0], 800), draw.sample(parts[1], 400)]
(X, y), (X_test, y_test) = (zip(*part, strict=True) for part in parts)
print(f"{len(X)} documents of {len(set(y))} classes to learn from, {len(X_test)} to ask")

for kernel in ("norm(st(lambda=0.4))", "norm(sst(lambda=0.4))", "norm(ptk(lambda=0.4))"):
    start = time.perf_counter()
    accuracy = espalier.SVC(kernel=kernel, C=10).fit(X, y).score(X_test, y_test)
    print(f"{kernel:22} accuracy {accuracy:.3f} in {time.perf_counter() - start:.1f} s")

if arguments.picture:
    X, y = zip(*sorted(zip(X[:100], y[:100], strict=True), key=lambda pair: pair[1]), strict=True)
    axes = espalier.plot.gram(espalier.Kernel(kernel)(X), y)
    axes.figure.set_size_inches(4.2, 3.6)
    axes.figure.savefig(arguments.picture, dpi=80)
