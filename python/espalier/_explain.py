"""What decides in a model, and about an example: the library's explanations (docs/explain.md) as objects.

They draw themselves in notebooks, and their :meth:`table` is a list of dicts, of which ``pandas.DataFrame`` and its kin
make tables.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any, NamedTuple

from ._svg import NEGATIVE, POSITIVE, tree_html
from .trees.text import write
from .trees.tree import Tree


class Feature(NamedTuple):
    """A feature of a model: a fragment, a word, a pattern, a value or, where the kernel has no features, a support
    example. ``value`` and ``contribution``, their product with the weight, are those of an example that is explained;
    of a model they are 0."""

    text: str
    kind: str
    weight: float
    value: float
    contribution: float
    size: int
    examples: int
    """Support examples that have it."""
    occurrences: float
    term: str
    """The summand of the kernel that it belongs to."""


class Decision(NamedTuple):
    """One decision function for an example: ``score = bias + sum of all contributions``.

    It is also the sum of ``bias``, of the contributions in ``up`` and ``down``, and of ``rest``, that of all other
    features; and the sum of ``bias`` and ``terms``, the scores by summand of the kernel.
    """

    label: str
    """The class it speaks for, ``"A against B"`` of a pair, or ``"value"``."""
    score: float
    bias: float
    up: list[Feature]
    down: list[Feature]
    rest: float
    terms: dict[str, float]
    trees: dict[str, tuple[Tree, list[float]]]
    """By term, the tree that it works on and the share of each node, parents before children."""
    exact: bool


class Explanation:
    """What decided about an example, as :meth:`espalier.Model.explain` gives it.

    ``decisions`` has one for the class, or one for each pair with it if ``multiclass="ovo"``; the attributes are those
    of the first. In a notebook it shows the tree, with nodes coloured by their shares, and the features as bars.
    """

    def __init__(self, decisions: list[Decision]) -> None:
        self.decisions = decisions
        first = decisions[0]
        self.label = first.label
        self.score = first.score
        self.bias = first.bias
        self.up = first.up
        self.down = first.down
        self.rest = first.rest
        self.terms = first.terms

    @property
    def tree(self) -> Tree | None:
        """The tree that was explained; None if no term of the kernel has fragments of trees."""
        return next((tree for tree, _ in self.decisions[0].trees.values()), None)

    @property
    def shares(self) -> list[float] | None:
        """What each node of the tree adds to the score, parents before children; summed over the terms that work on
        this tree."""
        own = [shares for tree, shares in self.decisions[0].trees.values() if tree == self.tree]
        return [sum(column) for column in zip(*own, strict=True)] if own else None

    def table(self) -> list[dict[str, Any]]:
        """A row for each feature."""
        return [
            {"label": decision.label, **feature._asdict()}
            for decision in self.decisions
            for feature in (*decision.up, *decision.down)
        ]

    def __repr__(self) -> str:
        return f"<Explanation of {self.label}: score {self.score:.4g}, {len(self.up)} up, {len(self.down)} down>"

    def __str__(self) -> str:
        lines = []
        for decision in self.decisions:
            lines += [f"{decision.label}\t{decision.score:.4g}", f"bias\t{decision.bias:.4g}"]
            lines += [f"{feature.text}\t{feature.contribution:.4g}" for feature in (*decision.up, *decision.down)]
            lines.append(f"rest\t{decision.rest:.4g}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(map(_decision_html, self.decisions))


class ModelExplanation:
    """The features that weigh most in a model: ``features`` has a list for each decision function, by its label, the
    largest first; lists of several terms follow each other."""

    def __init__(self, features: dict[str, list[Feature]], exact: bool) -> None:
        self.features = features
        self.exact = exact
        """Whether no feature that is left out weighs more; False where ``effort`` was spent."""

    def table(self) -> list[dict[str, Any]]:
        """A row for each feature."""
        return [
            {
                "label": label,
                **{k: v for k, v in feature._asdict().items() if k not in ("value", "contribution")},
            }
            for label, features in self.features.items()
            for feature in features
        ]

    def __repr__(self) -> str:
        return f"<ModelExplanation of {', '.join(self.features)}>"

    def _repr_html_(self) -> str:
        return "".join(
            _caption(label) + _bars([(feature, feature.weight) for feature in features])
            for label, features in self.features.items()
        )


# ------------------------------------------------------------------- from JSON


def read_example(lines: str) -> Explanation:
    """The explanation of an example from the library's JSON Lines."""
    return Explanation([_decision(json.loads(line)) for line in lines.splitlines()])


def read_model(lines: str) -> ModelExplanation:
    """The explanation of a model."""
    features: dict[str, list[Feature]] = {}
    exact = True
    for line in lines.splitlines():
        fields = json.loads(line)
        features.setdefault(fields["class"], []).append(_feature(fields))
        exact = exact and fields["exact"]
    return ModelExplanation(features, exact)


def _decision(line: dict[str, Any]) -> Decision:
    return Decision(
        label=line["class"],
        score=line["score"],
        bias=line["bias"],
        up=[_feature(fields) for fields in line["up"]],
        down=[_feature(fields) for fields in line["down"]],
        rest=line["rest"],
        terms={term["term"]: term["score"] for term in line["terms"]},
        trees={
            term["term"]: (_tree(term["nodes"]), [node["share"] for node in term["nodes"]])
            for term in line["terms"]
            if term.get("nodes")
        },
        exact=line["exact"],
    )


def _feature(fields: dict[str, Any]) -> Feature:
    return Feature(**{name: fields.get(name, 0.0) for name in Feature._fields})


def _tree(nodes: list[dict[str, Any]]) -> Tree:
    children: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes[1:], 1):
        children[node["parent"]].append(number)
    return Tree._from_canonical(write(0, lambda number: (nodes[number]["label"], children[number])))


# -------------------------------------------------------------------- pictures


def _decision_html(decision: Decision) -> str:
    facts = f"{decision.label}: score {decision.score:.4g}, of it bias {decision.bias:.4g}, rest {decision.rest:.4g}"
    pictures = "".join(tree_html(tree, shares) for tree, shares in decision.trees.values())
    bars = _bars([(feature, feature.contribution) for feature in (*decision.up, *decision.down)])
    return f"{_caption(facts)}{pictures}{bars}"


def _caption(text: str) -> str:
    return f'<p style="margin:0.5em 0"><b>{escape(text)}</b></p>'


def _bars(rows: list[tuple[Feature, float]]) -> str:
    """A table of features, each with a bar to the right of the middle if it is for the class, else to the left."""
    most = max((abs(number) for _, number in rows), default=0.0) or 1.0
    lines = []
    for feature, number in rows:
        length, place = 50 * abs(number) / most, "left" if number > 0 else "right"
        bar = (
            f'<div style="position:relative;width:12em;height:1em"><div style="position:absolute;{place}:50%;'
            f'width:{length:.1f}%;height:100%;background:{POSITIVE if number > 0 else NEGATIVE}"></div></div>'
        )
        lines.append(
            f'<tr><td style="text-align:right">{number:.4g}</td><td>{bar}</td>'
            f'<td style="text-align:left;overflow-wrap:anywhere"><code>{escape(feature.text)}</code></td></tr>'
        )
    return f'<table style="color:inherit"><tbody>{"".join(lines)}</tbody></table>'
