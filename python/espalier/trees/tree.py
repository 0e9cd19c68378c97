"""The class Tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .text import parse, quote, shorten, write


class Tree:
    """A tree with ordered children. It does not change, and depth, width and labels have no limits.

    ``str(tree)`` is its bracket text, and equal trees are those with equal text. ``len(tree)`` is the number of nodes.

    >>> from espalier import Tree
    >>> cat = Tree("NP", [Tree("D", ["a"]), Tree("N", ["cat"])])
    >>> str(cat)
    '(NP (D a) (N cat))'
    >>> cat == Tree.from_string("(NP (D a)(N (cat)))")
    True
    >>> cat.label, len(cat), cat.leaves()
    ('NP', 5, ['a', 'cat'])
    >>> [child.label for child in cat.children]
    ['D', 'N']
    """

    # At least one of the text and the label with its children is there; the other is made when it is asked for.
    __slots__ = ("_text", "_label", "_children", "__weakref__")

    _text: str | None
    _label: str | None
    _children: tuple[Tree, ...]

    def __init__(self, label: str, children: Iterable[Tree | str] = ()) -> None:
        if not isinstance(label, str):
            raise ValueError(f"the label of a node must be a string, not a value {shorten(label)}")
        if isinstance(children, str):
            raise ValueError(f"the children {shorten(children)} are a string; a list of trees and words is needed")
        quote(label)
        self._text = None
        self._label = str(label)
        self._children = tuple(_child(child) for child in children)

    @staticmethod
    def from_string(text: str) -> Tree:
        """Reads bracket text.

        >>> Tree.from_string("(A (B c)")
        Traceback (most recent call last):
        ValueError: character 9 of '(A (B c)': the text ends inside a tree; closing brackets missing: 1
        """
        return _parse(text)  # the text is not kept: it may have blanks and escapes that equal trees lack

    @staticmethod
    def _from_canonical(text: str) -> Tree:
        """Takes text as :func:`~espalier.trees.text.write` gives it, without a look at it."""
        tree = Tree.__new__(Tree)
        tree._text, tree._label, tree._children = text, None, ()
        return tree

    def _structure(self) -> Tree:
        if self._label is None:
            root = _parse(str(self._text))
            # The label comes last: another thread that sees it must find the children too.
            self._children = root._children
            self._label = root._label
        return self

    @property
    def label(self) -> str:
        """The label of the root."""
        return str(self._structure()._label)

    @property
    def children(self) -> tuple[Tree, ...]:
        """The trees below the root, from left to right."""
        return self._structure()._children

    def walk(self) -> Iterator[Tree]:
        """All nodes, each as the tree below it: parents before children, from left to right.

        >>> [node.label for node in Tree.from_string("(S (A b) c)").walk()]
        ['S', 'A', 'b', 'c']
        """
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self) -> list[str]:
        """The labels of the leaves from left to right."""
        return [node.label for node in self.walk() if not node.children]

    def __len__(self) -> int:
        return sum(1 for _ in self.walk())

    def __str__(self) -> str:
        if self._text is None:
            self._text = write(self, lambda node: (node.label, node.children))
        return self._text

    def __repr__(self) -> str:
        return f"Tree.from_string({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    # Text again: following the structure would recurse.
    def __reduce__(self) -> tuple[Any, ...]:
        return Tree._from_canonical, (str(self),)

    def __copy__(self) -> Tree:
        return self

    def __deepcopy__(self, memo: object) -> Tree:
        return self

    def _repr_svg_(self) -> str:
        from .._svg import tree_svg

        return tree_svg(self)

    def _repr_html_(self) -> str:
        from .._svg import tree_html

        return tree_html(self)


def _child(child: Tree | str) -> Tree:
    if isinstance(child, Tree):
        return child
    if isinstance(child, str):
        return Tree(child)
    raise ValueError(f"a child must be a Tree or a string, not a value {shorten(child)}")


def _parse(text: str) -> Tree:
    if not isinstance(text, str):
        raise ValueError(f"bracket text must be a string, not a value {shorten(text)}")
    leaves: dict[str, Tree] = {}  # shared, since trees do not change

    def make(label: str, children: list[Tree]) -> Tree:
        leaf = leaves.get(label)
        if leaf is None:
            leaf = leaves[label] = Tree(label)  # which looks at the label
        if not children:
            return leaf
        tree = Tree.__new__(Tree)
        tree._text, tree._label, tree._children = None, leaf._label, tuple(children)
        return tree

    root: Tree = parse(text, make)
    return root
