"""Source code as trees: nodes of Python's ast, and of tree-sitter for other languages."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .options import choose
from .text import Made, shorten, write

# Load or Store follows from where a name stands; the others do not change what the code does.
_PASSED_OVER = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def from_ast(obj: Any, *, fields: bool = True, names: str = "keep", constants: str = "keep") -> str:
    """A node of Python's ast, or Python source."""
    choose("names", names, ("keep", "abstract", "drop"))
    choose("constants", constants, ("keep", "abstract", "drop"))
    if isinstance(obj, (str, bytes)):
        obj = _load(obj)
    if not isinstance(obj, ast.AST):
        raise ValueError(f"a value {shorten(obj)} is no node of Python's ast")
    known: dict[type, list[str]] = {}

    def parts(value: Any) -> list[Any]:
        if isinstance(value, list):
            return [part for item in value for part in (parts(item) if item is not None else ["None"])]
        if isinstance(value, ast.AST):
            return [value]
        if isinstance(value, str):
            return [] if names == "drop" else ["name" if names == "abstract" else value or "''"]
        # Nothing there, or the number for "no": an import that is not relative, a for that is not async.
        return [] if value is None or value in (0, -1) else [str(value)]

    def constant(value: Any) -> list[str]:
        return [] if constants == "drop" else [type(value).__name__ if constants == "abstract" else repr(value)]

    def expand(node: Any) -> tuple[str, Sequence[Any]]:
        kind = type(node)
        if kind is ast.Constant or kind is ast.MatchSingleton:
            return kind.__name__, constant(node.value)
        if kind not in known:
            known[kind] = [field for field in kind._fields if field not in _PASSED_OVER]
        children: list[Any] = []
        for field in known[kind]:
            below = parts(getattr(node, field, None))
            if below and fields and len(known[kind]) > 1:
                children.append(Made(field, below))
            else:
                children += below
        return kind.__name__, children

    return write(obj, expand)


def _load(source: str | bytes) -> ast.AST:
    try:
        return ast.parse(source)
    except (RecursionError, MemoryError):
        raise ValueError("the Python source is nested deeper than Python's own parser can follow") from None
    except SyntaxError as error:
        raise ValueError(f"the Python source is wrong at line {error.lineno}: {error.msg}") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"the Python source has a lone surrogate at position {error.start}") from None


def from_tree_sitter(obj: Any, *, named: bool = True, text: str = "keep") -> str:
    """A node of tree-sitter, or the tree that its parser gives."""
    choose("text", text, ("keep", "drop"))

    def expand(node: Any) -> tuple[str, Sequence[Any]]:
        children = node.named_children if named else node.children
        # The type of an anonymous node is its text. A node whose parts are all anonymous, such as a string in quotes,
        # is a leaf where only named ones count, and has its text.
        if children or text == "drop" or not getattr(node, "is_named", True):
            return node.type, children
        content = node.text
        if isinstance(content, (bytes, bytearray)):
            content = bytes(content).decode("utf-8", "backslashreplace")
        return node.type, (content,) if content else ()

    return write(getattr(obj, "root_node", obj), expand)
