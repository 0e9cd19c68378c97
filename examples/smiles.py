"""Molecules as JSON Lines, for espalier: python3 examples/smiles.py [--target FIELD] FILE.csv >data.jsonl

A line has `y`, a number from the CSV file, and two views of the molecule. `tokens` are the atoms, bonds, branches and
ring numbers of its SMILES, in order. `tree` is the spanning tree that the SMILES describes. A node is an atom, with the
bond that leads to it unless that is single or aromatic; a bond that closes a ring is a leaf `@ATOM` at both ends. Rows
without a number are left out.
"""

import argparse
import csv
import json
import re

TOKEN = re.compile(r"\[[^\]]*\]|Br|Cl|[BCNOPSFIbcnops*]|%\d\d|\d|[-=#$:/\\().~]")
ATOM = re.compile(r"\[\d*(?P<element>se|as|[A-Z][a-z]?|[bcnops*])@*(?P<hydrogen>H\d*)?(?P<charge>[-+]*\d*)[^\]]*\]")


def tokens(smiles):
    found = TOKEN.findall(smiles)
    if not found or "".join(found) != smiles:
        raise ValueError(f"'{smiles}' is not SMILES")
    return found


def name(token):
    """The label of an atom: element and charge, and the hydrogen of an aromatic atom; no isotope and no chirality."""
    parts = ATOM.fullmatch(token)
    if not parts:
        return token
    return parts["element"] + (parts["hydrogen"] or "" if parts["element"].islower() else "") + parts["charge"]


def graph(smiles):
    """Labels of the atoms; for each atom its bonds as (kind, other atom, whether it closes a ring)."""
    labels: list[str] = []
    bonds: list[list[tuple]] = []
    open_rings: dict[str, tuple] = {}
    branches: list[int | None] = []
    last, kind = None, ""
    for token in tokens(smiles):
        if token == "(":
            branches.append(last)
        elif token == ")" and branches:
            last = branches.pop()
        elif token == ".":
            last = None
        elif token in "-=#$:/\\~":
            kind = token if token in "=#$" else ""
        elif last is not None and (token[0] == "%" or token.isdigit()):
            ring = token.lstrip("%0")
            if ring in open_rings:
                other, first = open_rings.pop(ring)
                bonds[last].append((kind or first, other, True))
                bonds[other].append((kind or first, last, True))
            else:
                open_rings[ring] = last, kind
            kind = ""
        elif token[0] in "[*" or token.isalpha():
            labels.append(name(token))
            bonds.append([])
            if last is not None:
                bonds[last].append((kind, len(labels) - 1, False))
                bonds[-1].append((kind, last, False))
            last, kind = len(labels) - 1, ""
        else:
            raise ValueError(f"'{smiles}': '{token}' has no atom or branch before it")
    if open_rings or branches:
        raise ValueError(f"'{smiles}' has a ring or a branch that does not end")
    return labels, bonds


def written(label, children):
    """Children are sorted, as the order in which SMILES names neighbours means nothing."""
    return f"({' '.join([label, *sorted(children)])})" if children else label


def tree(labels, bonds):
    """The spanning trees of all parts below one root. Children come after their parent: the last is written first."""
    texts: dict[int, str] = {}
    parts = []
    for atom in reversed(range(len(labels))):
        below = [bond for bond in bonds[atom] if bond[2] or bond[1] > atom]
        children = [f"@{kind}{labels[other]}" if ring else texts[other] for kind, other, ring in below]
        above = [kind for kind, other, ring in bonds[atom] if not ring and other < atom]
        texts[atom] = written("".join(above) + labels[atom], children)
        if not above:
            parts.append(texts[atom])
    return written("molecule", parts)


def views(smiles):
    return {"tokens": " ".join(tokens(smiles)), "tree": tree(*graph(smiles))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="y", metavar="FIELD", help="the number to predict (default y)")
    parser.add_argument("--smiles", default="smiles", metavar="FIELD", help="the SMILES (default smiles)")
    parser.add_argument("file", metavar="FILE.csv")
    given = parser.parse_args()
    with open(given.file, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        for row in reader:
            if row[given.target] not in ("", "nan"):
                try:
                    print(json.dumps({"y": float(row[given.target]), **views(row[given.smiles].strip())}))
                except ValueError as error:
                    parser.exit(1, f"{given.file}:{reader.line_num}: {error}\n")
