"""Nested Python values and JSON documents as trees; the policies are described in :func:`espalier.tree`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from .options import choose
from .text import Made, shorten, write
from .tree import Tree


def from_nested(obj: Any) -> str:
    """``(label, child, ...)`` in tuples or lists."""
    return write(obj, _expand_nested)


def _expand_nested(item: Any) -> tuple[str, Sequence[Any]]:
    if isinstance(item, (tuple, list)):
        if not item:
            raise ValueError("an empty tuple or list is no tree; its first item must be the label")
        label = item[0]
        if not isinstance(label, (str, Number)):
            raise ValueError(
                f"the first item of a tuple or list is its label, a string; a value {shorten(label)} is none"
            )
        return str(label), item[1:]
    if isinstance(item, Tree):
        return item.label, item.children
    if isinstance(item, (str, Number)):
        return str(item), ()
    raise ValueError(f"a value {shorten(item)} is no tree; nested trees consist of tuples, lists, strings and numbers")


def from_nltk(obj: Any) -> str:
    """``nltk.Tree`` and its kin; tagged words ``(word, tag)`` become ``(tag word)``."""
    # As in treebanks' ( (S ...) ): an outer bracket without a label is taken off.
    if obj.label() == "" and len(obj) == 1:
        obj = obj[0]
    return write(obj, _expand_nltk)


def _expand_nltk(item: Any) -> tuple[str, Sequence[Any]]:
    if isinstance(item, tuple):
        if len(item) != 2 or not all(isinstance(part, str) for part in item):
            raise ValueError(f"a leaf is a tuple of {len(item)} items; a tagged word has two strings, word and tag")
        return item[1], (item[0],)
    if not isinstance(item, list):
        return str(item), ()
    label = item.label()  # type: ignore[attr-defined]
    if label is None:
        raise ValueError("a node of the nltk tree has no label (None); every node needs one")
    return str(label), item


def from_dict(obj: Mapping[str, Any], *, label: str = "label", children: str = "children") -> str:
    """``{"label": ..., "children": [...]}``; other keys are passed over."""

    def expand(item: Any) -> tuple[str, Sequence[Any]]:
        if isinstance(item, (str, Number)):
            return str(item), ()
        if not isinstance(item, Mapping):
            raise ValueError(
                f"a value {shorten(item)} is no tree; a node is a dict with the key {label!r}, or a string"
            )
        if not isinstance(item.get(label), (str, Number)):
            raise ValueError(f"a node has no string under the key {label!r}; its keys are {_keys(item)}")
        below = item.get(children)
        if below is not None and not isinstance(below, (list, tuple)):
            raise ValueError(
                f"what is under the key {children!r} must be a list of trees, not a value {shorten(below)}"
            )
        return str(item[label]), below or ()

    return write(obj, expand)


def _keys(item: Mapping[Any, Any]) -> str:
    names = [shorten(key) for key in list(item)[:5]]
    return ", ".join(names) + (", ..." if len(item) > 5 else "") if names else "none"


def looks_like_node(obj: Mapping[Any, Any]) -> bool:
    """Whether a dict is a node of :func:`from_dict` rather than a document."""
    return isinstance(obj.get("label"), str) and (
        isinstance(obj.get("children"), (list, tuple)) or set(obj) <= {"label", "children"}
    )


def from_json(obj: Any, *, values: str = "keep", sort: bool = True) -> str:
    """A JSON document: text of one, or what ``json.loads`` gives."""
    choose("values", values, ("keep", "abstract", "drop"))
    if isinstance(obj, (str, bytes, bytearray)):
        obj = _load(obj)

    def under(value: Any) -> list[Any]:
        if isinstance(value, (Mapping, list, tuple)):
            return [value]
        return [] if values == "drop" else [_scalar(value, values == "abstract")]

    def expand(item: Any) -> tuple[str, Sequence[Any]]:
        if isinstance(item, Mapping):
            members = [(_scalar(key), value) for key, value in item.items()]
            if sort:
                members.sort(key=lambda member: member[0])
            return "object", [Made(key, under(value)) for key, value in members]
        if isinstance(item, (list, tuple)):
            return "array", [part for value in item for part in under(value)]
        return _scalar(item, values != "keep"), ()

    return write(obj, expand)


def _scalar(value: Any, abstract: bool = False) -> str:
    """The label of a value without parts, or the name of its type."""
    if isinstance(value, str):
        return "string" if abstract else value or '""'  # a label cannot be empty
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean" if abstract else "true" if value else "false"
    if isinstance(value, Number):
        return "number" if abstract else str(value)
    raise ValueError(
        f"a value {shorten(value)} is none of JSON's; "
        "a document consists of dicts, lists, strings, numbers, True, False and None"
    )


def _load(text: str | bytes | bytearray) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(
            "the JSON text is nested deeper than Python's json module can read; give the lists and dicts themselves"
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the JSON text is not UTF-8: {error.reason} at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the JSON text is wrong at line {error.lineno}, column {error.colno}: {error.msg}") from None
