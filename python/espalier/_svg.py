"""Pictures for notebooks without matplotlib: trees as SVG, facts about models as an HTML table.

A tree is laid out tidily: the nodes of a level stand in a row, a parent stands in the middle above its children, and
subtrees move together until their outlines nearly touch (Reingold and Tilford, "Tidier drawings of trees", IEEE
Transactions on Software Engineering 1981), here with labels of different widths. A very large tree shows its upper
part, with the number of nodes that are left out.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from .trees.tree import Tree

WHOLE = 300  # nodes; a larger tree shows its upper part:
UPPER_NODES = 80
UPPER_SIBLINGS = 6
MOST_LEVELS = 40

POSITIVE, NEGATIVE = "#D55E00", "#0072B2"  # told apart by colour-blind eyes too (Okabe and Ito)

_FONT = 13.0  # pixels
_ROW = 3.0  # heights of the font
_GAP = 1.6  # between neighbours, in widths of a letter
_LONGEST = 24  # letters of a label that are shown


class Placed(NamedTuple):
    """A node in a picture. Widths and x are in letters, from the left edge; y is the number of the row."""

    label: str
    parent: int  # its place in the list of nodes; -1: the root
    x: float
    y: int
    width: float
    number: int  # its place in the tree, parents before children; -1: it stands for nodes that are left out
    full: str  # the label, uncut


class Layout(NamedTuple):
    nodes: list[Placed]  # parents before children
    width: float
    rows: int
    total: int  # nodes of the tree


class _Flat(NamedTuple):
    """A tree in arrays, parents before children."""

    labels: list[str]
    children: list[list[int]]
    sizes: list[int]


def _flatten(tree: Tree) -> _Flat:
    labels: list[str] = []
    children: list[list[int]] = []
    parents: list[int] = []
    stack = [(tree, -1)]
    while stack:
        node, parent = stack.pop()
        index = len(labels)
        labels.append(node.label)
        children.append([])
        parents.append(parent)
        if parent >= 0:
            children[parent].append(index)
        stack.extend((child, index) for child in reversed(node.children))
    sizes = [1] * len(labels)
    for index in range(len(labels) - 1, 0, -1):
        sizes[parents[index]] += sizes[index]
    return _Flat(labels, children, sizes)


class _Shown(NamedTuple):
    """A node that is in the picture, before it has a place."""

    number: int
    parent: int
    level: int
    label: str


def _choose(flat: _Flat) -> list[_Shown]:
    """The nodes to show, level by level: the upper part of the tree, with a stand-in where something is left out."""
    shown = [_Shown(0, -1, 0, flat.labels[0])]
    large = len(flat.labels) > WHOLE
    room, siblings = (UPPER_NODES - 1, UPPER_SIBLINGS) if large else (WHOLE, WHOLE)
    for place, node in enumerate(shown):  # grows on the way
        below = flat.children[node.number] if node.number >= 0 else []
        count = min(room, siblings, len(below)) if node.level + 1 < MOST_LEVELS else 0
        room -= count
        shown += [_Shown(index, place, node.level + 1, flat.labels[index]) for index in below[:count]]
        if count < len(below):
            hidden = sum(flat.sizes[index] for index in below[count:])
            shown.append(_Shown(-1, place, node.level + 1, f"\u22ef {hidden:,}"))
    return shown


def _printable(label: str) -> str:
    """The label on one line, with nothing that XML cannot hold."""
    label = label.translate({9: "\u2409", 10: "\u2424", 11: "\u240b", 12: "\u240c", 13: "\u240d"})
    return re.sub("[\0-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", label)


def _letters(label: str) -> float:
    """How wide a label is, roughly, in widths of a letter."""
    return sum(
        0.0 if unicodedata.combining(c) else 1.8 if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in label
    )


def arrange(tree: Tree) -> Layout:
    """Places the nodes of a tree. O(nodes shown times levels), after one pass over the tree."""
    flat = _flatten(tree)
    shown = _choose(flat)
    full = [_printable(node.label) for node in shown]
    labels = [text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026" for text in full]
    widths = [max(_letters(label), 1.0) for label in labels]
    below: list[list[int]] = [[] for _ in shown]
    for place, node in enumerate(shown[1:], 1):
        below[node.parent].append(place)
    offsets, left = _offsets(below, widths)
    x = [0.0] * len(shown)
    for place, node in enumerate(shown):
        x[place] = offsets[place] + (x[node.parent] if place else -left)
    nodes = [
        Placed(labels[i], node.parent, x[i], node.level, widths[i], node.number, full[i])
        for i, node in enumerate(shown)
    ]
    width = max(node.x + node.width / 2 for node in nodes)
    return Layout(nodes, width, 1 + max(node.y for node in nodes), len(flat.labels))


def _offsets(below: list[list[int]], widths: list[float]) -> tuple[list[float], float]:
    """How far each node stands to the right of its parent, and how far the picture reaches to the left of the root
    (a number below 0)."""
    offsets = [0.0] * len(below)
    outlines: dict[int, list[tuple[float, float]]] = {}  # ends of each level of a subtree, measured from its root
    for place in range(len(below) - 1, -1, -1):  # children before parents
        merged: list[tuple[float, float]] = []
        for child in below[place]:
            outline = outlines.pop(child)
            shift = max((a[1] - b[0] + _GAP for a, b in zip(merged, outline, strict=False)), default=0.0)
            offsets[child] = shift
            moved = [(start + shift, end + shift) for start, end in outline]
            both = [(a[0], b[1]) for a, b in zip(merged, moved, strict=False)]
            merged = both + merged[len(both) :] + moved[len(both) :]
        middle = (offsets[below[place][0]] + offsets[below[place][-1]]) / 2 if below[place] else 0.0
        for child in below[place]:
            offsets[child] -= middle
        half = widths[place] / 2
        outlines[place] = [(-half, half)] + [(start - middle, end - middle) for start, end in merged]
    return offsets, min(start for start, _ in outlines[0])


def shades(tree_size: int, contributions: Sequence[float]) -> list[float]:
    """Contributions of nodes, scaled to -1 .. 1."""
    values = [float(value) for value in contributions]
    if len(values) != tree_size:
        raise ValueError(f"{len(values)} contributions for a tree of {tree_size} nodes; each node needs one")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a contribution is not finite; nodes cannot be coloured by nan or inf")
    most = max(map(abs, values))
    return [value / most if most > 0 else 0.0 for value in values]


def tree_svg(tree: Tree, contributions: Sequence[float] | None = None, *, standalone: bool = True) -> str:
    """The picture of a tree. Nodes with positive contributions are orange, with negative ones blue; there is one number
    per node, parents before children as in :meth:`Tree.walk`. A picture that is not ``standalone`` takes the colour of
    the text around it, in light pages and dark ones.

    >>> tree_svg(Tree("NP", ["a", "cat"]))[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """
    layout = arrange(tree)
    shade = shades(layout.total, contributions) if contributions is not None else [0.0] * layout.total
    letter, margin = 0.6 * _FONT, 8.0
    boxes, lines, texts = [], [], []
    for node in layout.nodes:
        x, y = margin + node.x * letter, margin + _FONT * (0.5 + _ROW * node.y)
        value = shade[node.number] if node.number >= 0 else 0.0
        if value:
            boxes.append(
                f'<rect x="{x - node.width * letter / 2 - 3:.1f}" y="{y - 0.8 * _FONT:.1f}" rx="4" '
                f'width="{node.width * letter + 6:.1f}" height="{1.6 * _FONT:.1f}" '
                f'fill="{POSITIVE if value > 0 else NEGATIVE}" fill-opacity="{0.1 + 0.6 * abs(value):.2f}"/>'
            )
        if node.parent >= 0:
            above = layout.nodes[node.parent]
            lines.append(
                f"M{margin + above.x * letter:.1f} {y + _FONT * (0.9 - _ROW):.1f}L{x:.1f} {y - 0.9 * _FONT:.1f}"
            )
        title = f"<title>{escape(node.full)}</title>" if node.full != node.label else ""
        faint = ' fill-opacity="0.6"' if node.number < 0 else ""
        texts.append(f'<text x="{x:.1f}" y="{y + 0.35 * _FONT:.1f}"{faint}>{escape(node.label)}{title}</text>')
    width, height = 2 * margin + layout.width * letter, 2 * margin + _FONT * (1.0 + _ROW * (layout.rows - 1))
    note = _note(layout)
    if note:
        height += 1.6 * _FONT
        width = max(width, 2 * margin + len(note) * letter)
        texts.append(
            f'<text x="{margin:.1f}" y="{height - margin:.1f}" text-anchor="start" fill-opacity="0.6">{note}</text>'
        )
    style = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" role="img" aria-label="tree of {layout.total} nodes">{style}'
        f'{"".join(boxes)}<path d="{"".join(lines)}" fill="none" stroke="currentColor" stroke-opacity="0.45"/>'
        f'<g fill="currentColor" font-family="sans-serif" font-size="{_FONT:g}" text-anchor="middle" '
        f'xml:space="preserve">{"".join(texts)}</g></svg>'
    )


def _note(layout: Layout) -> str:
    shown = sum(node.number >= 0 for node in layout.nodes)
    return f"{shown:,} of {layout.total:,} nodes shown" if shown < layout.total else ""


def tree_html(tree: Tree, contributions: Sequence[float] | None = None) -> str:
    """The picture of a tree inside a page, in the colour of its text; a wide one can be moved."""
    return f'<div style="overflow-x:auto">{tree_svg(tree, contributions, standalone=False)}</div>'


def model_html(summary: str, title: str = "") -> str:
    r"""A table of the facts in ``summary``, lines ``key<TAB>value`` as esp_model_summary gives them. Neighbouring lines
    with the same key share a row.

    >>> "<td>a, b</td>" in model_html("learner\tsvm\nclass\ta\nclass\tb\n")
    True
    """
    facts: list[tuple[str, list[str]]] = []
    for line in summary.split("\n"):
        key, _, value = line.partition("\t")
        if facts and facts[-1][0] == key:
            facts[-1][1].append(value)
        elif line:
            facts.append((key, [value]))
    head = f'<caption style="text-align:left;font-weight:bold">{escape(title)}</caption>' if title else ""
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left;vertical-align:top;white-space:nowrap">{escape(key)}</th>'
        f"<td>{escape(', '.join(values))}</td></tr>"
        for key, values in facts
    )
    return f'<table style="color:inherit;text-align:left;overflow-wrap:anywhere">{head}<tbody>{rows}</tbody></table>'
