"""Writes data that a page may stumble over: labels like markup, trees of 100,000 nodes, wide fragments, all sizes of
numbers."""

import json
import random

random.seed(1)


def escaped(label):
    return "".join("\\" + c if c in "() \t\n\\" else c for c in label)


names = [
    "</script><img src=x onerror=alert(1)>",
    "\"quotes' & <b>",
    "\u0001 control\n\ttab",
    "\u6f22 \u00fcn\u00ef",
    "(round) \\back",
]
with open("nasty.jsonl", "wb") as nasty:
    for i in range(45):
        kind, word = names[i % 3], random.choice(names)
        tree = f"({escaped(names[4])} (A {escaped(word)}) ({escaped(kind)} {escaped(random.choice(names))}))"
        line = json.dumps({"y": kind, "tree": tree, "<b>": "a </script> b"}, ensure_ascii=False).encode()
        nasty.write((line.replace(b"(A ", b"(A\xff\xed\xa0\x80 ") if i % 4 == 0 else line) + b"\n")


def bushy(depth):
    return "(B x)" if depth == 0 else f"(C{depth % 3} {bushy(depth - 1)} {bushy(depth - 1)})"


with open("large.jsonl", "w") as file:
    trees = {"deep": "(A " * 100000 + "x" + ")" * 100000, "bushy": bushy(15), "wide": "(S" + " (N w)" * 50000 + ")"}
    for kind, tree in trees.items():
        file.write(json.dumps({"y": kind, "tree": tree}) + "\n")
        file.write(json.dumps({"y": kind, "tree": "(S (N w) (A x))"}) + "\n")

with open("numbers.jsonl", "w") as file:
    for _ in range(60):
        a, b = random.random(), random.randint(0, 2)
        file.write(json.dumps({"y": round(2 * a + b, 3), "tree": f"(S (K{b} w{b}))", "x": {"a": a}}) + "\n")

for name, unit in ("millions", 1e6), ("tiny", 1e-5):
    with open(name + ".jsonl", "w") as file:
        for i in range(40):
            file.write(json.dumps({"y": -3 * unit + unit * i / 4, "x": {"a": i / 40, "b": random.random()}}) + "\n")

with open("wide.jsonl", "w") as file:
    for i in range(30):
        wide = " ".join(f"(CATEGORY{k} word{k}{i % 2})" for k in range(12))
        file.write(json.dumps({"y": i % 2 + random.random(), "tree": f"(S {wide})", "x": [random.random()]}) + "\n")
