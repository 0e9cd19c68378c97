"""Clone detection: which function of the standard library was this one copied from?

Copies of functions are planted: identifiers renamed, statements shuffled, or both. Each copy asks for its nearest
neighbour among all functions, and so do strangers, which have no copy there. Neighbours more similar than a threshold
are taken for originals; lowering it raises recall (of all copies) and costs precision (of what was taken).
"""

import argparse
import ast
import builtins
import copy
import importlib.util
import random
import sysconfig
import time
from pathlib import Path

import numpy as np

import espalier


def rename(function):
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
            node.id += "_copy"
        elif isinstance(node, ast.arg):
            node.arg += "_copy"


def reorder(function):
    for node in ast.walk(function):
        for block in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            if isinstance(block, list):
                draw.shuffle(block)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--full", action="store_true", help="all modules, not only some")
parser.add_argument("--picture", metavar="FILE", help="draw there, by matplotlib")
arguments = parser.parse_args()
if arguments.picture and not importlib.util.find_spec("matplotlib"):
    parser.error("--picture needs matplotlib: pip install 'espalier-kernels[plot]'")
draw = random.Random(1)

files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
files = [file for file in files if not {"site-packages", "dist-packages", "test", "tests"} & set(file.parts)]
found: dict[espalier.Tree, ast.FunctionDef] = {}  # functions that are equal but for names and constants are there once
for file in files if arguments.full else files[:60]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.FunctionDef) and 100 <= sum(1 for _ in ast.walk(node)) <= 600:
            found.setdefault(espalier.tree(node, names="abstract", constants="abstract"), node)
functions = draw.sample(list(found.values()), k=len(found))
count = len(functions) // 10
asked, library, answers = functions[:count], functions[count:], [-1] * count
for edits in [rename], [reorder], [rename, reorder]:
    copies = copy.deepcopy(library[:count])
    for function, edit in [(function, edit) for function in copies for edit in edits]:
        edit(function)
    asked, answers = asked + copies, answers + list(range(count))
nodes = np.mean([len(tree) for tree in found])
print(f"{len(library)} functions of {nodes:.0f} nodes on average, {count} strangers, {count} copies of each kind")
print("                         | nearest is the original | precision at recall |")
print("kernel          names    | renamed reordered  both |   0.8    0.9   0.95 | seconds")
curves = []
for kernel, colour in ("sst(lambda=0.4)", "#0072B2"), ("sst(lambda=0.1)", "#009E73"), ("ptk(lambda=0.4)", "#D55E00"):
    for names, line in ("keep", ":"), ("abstract", "-"):
        X, Y = ([espalier.tree(f, names=names, constants="abstract") for f in part] for part in (asked, library))
        start = time.perf_counter()
        similar = espalier.Kernel(f"norm({kernel})")(X, Y)
        seconds = time.perf_counter() - start
        right, nearest = similar.argmax(axis=1) == answers, similar.max(axis=1)
        hits = np.cumsum(right[np.argsort(-nearest)])
        precision, recall = hits / np.arange(1, len(hits) + 1), hits / (3 * count)
        first = "{:8.3f}{:10.3f}{:6.3f}".format(*right.reshape(4, count)[1:].mean(axis=1))
        best = "".join(f"{precision[recall >= r].max(initial=0):7.3f}" for r in (0.8, 0.9, 0.95))
        print(f"{kernel} {names:9}|{first} |{best[1:]} |{seconds:8.1f}")
        curves.append((recall, precision, line, {"color": colour, "label": f"{kernel}, {names}"}))

if arguments.picture:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.4, 3), layout="constrained")
    for *curve, style in curves:
        axes.plot(*curve, **style)
    axes.set(xlabel="recall", ylabel="precision", ylim=(0.4, 1.02))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")
    figure.savefig(arguments.picture, dpi=80)
