"""Slow, obvious versions of what the library computes, written from the definitions."""

from __future__ import annotations

import itertools

Node = tuple[str, tuple["Node", ...]]


def parse(text: str) -> Node:
    """A bracketed tree without escapes."""
    stack: list[list] = [[]]
    for token in text.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            stack.append([])
        elif token == ")":
            label, *children = stack.pop()
            stack[-1].append((label[0], tuple(children)))
        else:
            stack[-1].append((token, ()))
    tree: Node = stack[0][0]
    return tree


def nodes(tree: Node) -> list[Node]:
    """Inner nodes: those with children."""
    found = [tree] if tree[1] else []
    for child in tree[1]:
        found += nodes(child)
    return found


def production(node: Node) -> tuple:
    return node[0], tuple((child[0], bool(child[1])) for child in node[1])


def sst(s: Node, t: Node, decay: float) -> float:
    """The subset-tree kernel (Collins and Duffy 2002) as its recursion over pairs of nodes."""

    def delta(a: Node, b: Node) -> float:
        if production(a) != production(b):
            return 0.0
        value = decay
        for c, d in zip(a[1], b[1]):
            value *= 1.0 + delta(c, d) if c[1] else 1.0
        return value

    return sum(delta(a, b) for a in nodes(s) for b in nodes(t))


def fragment_matches(fragment: Node, node: Node) -> bool:
    """Whether a fragment, in which (NP ...) is an open node, has its root at a node."""
    if [c[1] for c in fragment[1]] == [()] and fragment[1][0][0] == "...":
        return fragment[0] == node[0] and bool(node[1])
    if fragment[0] != node[0] or len(fragment[1]) != len(node[1]):
        return False
    return all(fragment_matches(f, n) if f[1] else f[0] == n[0] and not n[1] for f, n in zip(fragment[1], node[1]))


def fragment_count(fragment: str, tree: str) -> int:
    return sum(fragment_matches(parse(fragment), node) for node in nodes(parse(tree)))


def subsequence_count(pattern: str, words: str, contiguous: bool = False) -> int:
    wanted, tokens = pattern.split(), words.split()
    places = itertools.combinations(range(len(tokens)), len(wanted))
    return sum(
        [tokens[i] for i in at] == wanted and (not contiguous or at[-1] - at[0] == len(wanted) - 1) for at in places
    )
