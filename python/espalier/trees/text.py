"""Trees as bracket text, as docs/formats.md describes it.

    tree = "(" label child* ")"     child = tree | leaf

Inside a label a backslash takes the meaning from a bracket, an ASCII blank or a backslash; before anything else it
stands for itself. Text written here has one form per tree, the one that the C library writes, so that equal trees are
equal strings. Nothing here recurses: depth is limited by memory alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

BLANKS = " \t\n\r\v\f"

_UNUSUAL = re.compile(r"[()\\ \t\n\r\v\f\0\ud800-\udfff]")
_IMPOSSIBLE = re.compile(r"[\0\ud800-\udfff]")
_TO_ESCAPE = re.compile(r"[() \t\n\r\v\f]|\\(?=[() \t\n\r\v\f\\]|\Z)")


class Made(NamedTuple):
    """A node that a conversion puts in between, such as the name of a field over its values."""

    label: str
    children: Sequence[Any]


Expand = Callable[[Any], tuple[str, Sequence[Any]]]
"""Gives the label and the children of a node; see :func:`write`."""


def quote(label: str) -> str:
    """The label as it stands in bracket text.

    >>> quote("a cat (or two)")
    'a\\\\ cat\\\\ \\\\(or\\\\ two\\\\)'
    """
    if label.isalnum():  # the usual case, and much faster than a pattern
        return label
    if _UNUSUAL.search(label) is None:
        if label:
            return label
        raise ValueError("a node has an empty label; every node of a tree needs one of at least one character")
    wrong = _IMPOSSIBLE.search(label)
    if wrong is not None:
        what = "a NUL character" if wrong.group() == "\0" else f"the lone surrogate U+{ord(wrong.group()):04X}"
        raise ValueError(
            f"the label {shorten(label)} has {what} at position {wrong.start()}; text must not contain any"
        )
    return _TO_ESCAPE.sub(r"\\\g<0>", label)


def unquote(text: str) -> str:
    """The label that stands in bracket text as ``text``."""
    return re.sub(r"\\([() \t\n\r\v\f\\])", r"\1", text) if "\\" in text else text


def shorten(value: object, most: int = 60) -> str:
    """The value for a message, cut where it is long."""
    # Only the head is written out: repr of a deeply nested value would recurse.
    if not isinstance(value, str):
        return f"of type {type(value).__name__}"
    return ascii(value) if len(value) <= most else ascii(value[:most]) + "..."


def write(root: Any, expand: Expand) -> str:
    """Brackets for the tree below ``root``. ``expand`` gives the label and the children of a node; a child that is a
    string is a leaf, and one that is :class:`Made` needs no expanding. O(nodes).

    >>> write(3, lambda n: (str(n), range(n)))
    '(3 0 (1 0) (2 0 (1 0)))'
    """
    label, children = root if type(root) is Made else expand(root)
    parts = ["(", quote(label)]
    frames: list[tuple[Any, Iterator[Any]]] = [(root, iter(children))]
    path = {id(root)}  # of what is in `frames`, which keeps them alive: an object below itself has no end
    add = parts.append
    while frames:
        node, rest = frames[-1]
        for child in rest:
            if isinstance(child, str):
                add(" ")
                add(quote(child))
                continue
            label, children = child if type(child) is Made else expand(child)
            if not children:
                add(" ")
                add(quote(label))
                continue
            if id(child) in path:
                raise ValueError(f"an object {shorten(child)} contains itself; such a tree has no end")
            path.add(id(child))
            frames.append((child, iter(children)))
            add(" (")
            add(quote(label))
            break
        else:
            add(")")
            path.discard(id(node))
            frames.pop()
    return "".join(parts)


_WORD, _OPEN, _CLOSE = 1, 2, 3
_TOKEN = re.compile(r"((?:[^() \t\n\r\v\f\\]+|\\.|\\\Z)+)|(\()|(\))", re.S)  # all but blanks is one of them


def parse(text: str, make: Callable[[str, list[Any]], Any]) -> Any:
    """Reads one tree; ``make(label, children)`` is called for every node, children first, and its value is a child of
    the node above. A mistake is a ``ValueError`` that names the place, counted from 1. O(characters).

    >>> parse("( (S (NP she) sleeps) )", lambda label, children: [label, *children])
    ['S', ['NP', ['she']], ['sleeps']]
    """

    def fail(at: int, reason: str) -> ValueError:
        return ValueError(f"character {at + 1} of {shorten(text)}: {reason}")

    if "\0" in text:
        raise fail(text.index("\0"), "a NUL character inside a tree")
    labels: list[str | None] = []  # of the brackets that are open; None: not read yet, or there is none
    nodes: list[list[Any]] = []  # their children so far
    fresh = False  # whether a bracket was just opened, so that a word is its label
    root: list[Any] = []
    for token in _TOKEN.finditer(text):
        what = token.lastindex
        if root:
            raise fail(token.start(), "something stands behind the tree; one string holds one tree")
        if what == _OPEN:
            labels.append(None)
            nodes.append([])
            fresh = True
            continue
        if not labels:
            raise fail(token.start(), _OUTSIDE[what or _WORD])
        if what == _WORD:
            if fresh:
                labels[-1] = unquote(token[0])
            else:
                nodes[-1].append(make(unquote(token[0]), []))
        else:
            label, children = labels.pop(), nodes.pop()
            if label is None and (len(children) != 1 or labels):
                raise fail(token.start(), _without_label(len(children), outermost=not labels))
            node = children[0] if label is None else make(label, children)
            (nodes[-1] if labels else root).append(node)
        fresh = False
    if labels:
        raise fail(len(text), f"the text ends inside a tree; closing brackets missing: {len(labels)}")
    if not root:
        raise ValueError("the text is empty; a tree starts with '('")
    return root[0]


_OUTSIDE = {_WORD: "a tree starts with '('", _CLOSE: "a bracket closes that was never opened"}


def _without_label(children: int, outermost: bool) -> str:
    if children == 0:
        return "empty brackets; a node needs a label"
    if not outermost:
        return "a bracket without a label inside a tree"
    return "a bracket without a label around several trees; it may hold one"
