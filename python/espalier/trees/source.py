"""Syntax trees of tree-sitter for comparing programs.

A grammar has named nodes (``if_statement``) and anonymous ones, the tokens (``if``, ``(``, ``==``). Without tokens,
``x == 1`` and ``x != 1`` are the same; with all of them half of a tree is brackets and commas. Kept are tokens that
tell something:

* operators and keywords, but not a keyword that is a word of its node's name;
* ``:`` and ``;`` with a missing part beside them, as in ``a[1:]`` and ``for (;;)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .text import write
from .tree import Tree

_DROPPED = frozenset("()[]{},.\"'`") | {'"""', "'''", "\n", ""}
_BRACKETS = frozenset("()[]{}")
_FUNCTION = re.compile(
    r"(function|method|constructor|destructor|subroutine|procedure|local_function|compact_constructor)"
    r"_(definition|declaration|item|statement)|method|singleton_method"
)
_BODY = re.compile(r"(.*_)?(body|block|compound_statement)")
_NAME = re.compile(r"(.*_)?(identifier|name|variable)")
_STRING = re.compile(r".*(string|heredoc).*|(.*_)?(char|character|rune)(_literal|_content)?|escape_sequence")
_CONSTANT = re.compile(r".*_literal|(.*_)?(integer|float|number|imaginary|regex|complex|rational)")


class Policy(NamedTuple):
    names: str = "keep"
    constants: str = "keep"
    comments: str = "drop"


class Unit(NamedTuple):
    """A function or file: a pair, but as an example its tree, not a nested tree with the id as its root."""

    id: str
    tree: Tree


class Source(NamedTuple):
    """A tree that was written, and what was counted on the way."""

    text: str
    nodes: int


@lru_cache(maxsize=4096)
def _kind(type: str) -> str:
    """What a named node is by its type."""
    if "comment" in type:
        return "comment"
    for kind, pattern in (("string", _STRING), ("name", _NAME), ("constant", _CONSTANT)):
        if pattern.fullmatch(type):
            return kind
    return ""


def is_function(type: str) -> bool:
    """Whether nodes of the type are functions or methods, be it without a body."""
    return _FUNCTION.fullmatch(type) is not None


def functions(root: Any) -> Iterator[Any]:
    """The functions below a node in the order of the source; those inside of another one are parts of it."""
    stack = [root]
    while stack:
        node = stack.pop()
        if _is_unit(node):
            yield node
        else:
            stack.extend(reversed(node.named_children))


def count_errors(root: Any, *, outside: bool = False) -> int:
    """The syntax errors below a node; only those outside of functions, if it is told. O(nodes above errors)."""
    errors, stack = 0, [root]
    while stack:
        node = stack.pop()
        if node.has_error and not (outside and _is_unit(node)):
            errors += node.is_error or node.is_missing
            stack.extend(node.children)
    return errors


def _is_unit(node: Any) -> bool:
    return is_function(node.type) and _has_body(node)


def _has_body(node: Any) -> bool:
    return node.child_by_field_name("body") is not None or any(
        _BODY.fullmatch(child.type) for child in node.named_children
    )


def write_source(root: Any, policy: Policy) -> Source:
    """Brackets for the tree below a node. O(nodes)."""
    numbers: dict[str, str] = {}
    nodes = 0

    def name(text: str) -> list[str]:
        if policy.names == "number":
            return [numbers.setdefault(text, f"v{len(numbers) + 1}")]
        return _leaf(text, policy.names, "name")

    def expand(node: Any) -> tuple[str, Sequence[Any]]:
        nonlocal nodes
        label = node.type
        nodes += 1
        if not node.is_named and not node.is_missing:
            return label, ()
        if node.is_missing:
            nodes += 1
            return "MISSING", (label,)
        kind, children = _kind(label), node.children
        if kind == "comment":
            content = _leaf(_text_of(node), policy.comments if policy.comments == "keep" else "drop", "")
        elif kind == "string" and all(_kind(child.type) == "string" for child in children if child.is_named):
            content = _leaf(_text_of(node), policy.constants, "constant")
        elif children:
            kept = _kept(node, children, policy)
            if kept:
                return label, kept
            content = _punctuation(children)
        elif kind == "name":
            content = name(_text_of(node))
        elif kind == "constant":
            content = _leaf(_text_of(node), policy.constants, "constant")
        else:
            text = _text_of(node)
            content = [] if text.lower() == label.lower() else _leaf(text, "keep", "")
        nodes += len(content)
        return label, content

    text = write(root, expand)
    return Source(text, nodes)


def _leaf(text: str, policy: str, instead: str) -> list[str]:
    if policy == "drop" or not text:
        return []
    return [text if policy == "keep" else instead]


def _text_of(node: Any) -> str:
    text: str = (node.text or b"").decode("utf-8", "backslashreplace")
    return text.replace("\0", "\\0")


def _kept(node: Any, children: Sequence[Any], policy: Policy) -> list[Any]:
    words: list[str] | None = None
    kept = []
    for i, child in enumerate(children):
        if child.is_named or child.is_missing:
            if policy.comments != "drop" or _kind(child.type) != "comment":
                kept.append(child)
            continue
        token = child.type
        if token in _DROPPED:
            continue
        if token in (":", ";"):
            if _beside_a_gap(children, i):
                kept.append(child)
            continue
        if token[:1].isalpha():
            if words is None:
                words = node.type.lower().split("_")
            if token.lower() in words:
                continue
        kept.append(child)
    return kept


def _beside_a_gap(children: Sequence[Any], at: int) -> bool:
    """Whether a colon or semicolon stands where a part could stand beside it and does not."""
    token = children[at].type
    before = children[at - 1].type if at > 0 else None
    after = children[at + 1].type if at + 1 < len(children) else None
    if before == token or after == token:
        return True
    if token == ":":
        return before is None or after is None
    return before == "(" or after == ")"


def _punctuation(children: Sequence[Any]) -> list[str]:
    """The text of a node of nothing but tokens: none of a keyword, an end or a pair of brackets."""
    tokens = [child.type for child in children if child.type in _DROPPED]
    if not tokens or (len(tokens) == 2 and _BRACKETS.issuperset(tokens)):
        return []
    return ["".join(tokens)]
