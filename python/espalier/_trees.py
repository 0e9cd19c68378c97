"""Any tree a person has, as an espalier.Tree: which kind of object it is, and which conversion belongs to it.

No library is imported for it: objects are recognised by what they have, so that nltk, spaCy and the others are needed
by those only who hold their objects.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from .trees import code, dependencies, markup, nested
from .trees.source import Unit
from .trees.text import BLANKS, shorten
from .trees.tree import Tree

__all__ = ["KINDS", "Tree", "Unit", "kind_of", "to_brackets", "tree"]


def _from_tree(obj: Tree | Unit) -> str:
    if isinstance(obj, Unit):
        return str(obj.tree)
    if not isinstance(obj, Tree):
        raise ValueError(f"a value {shorten(obj)} is no espalier.Tree")
    return str(obj)


def _from_brackets(text: str) -> str:
    return str(Tree.from_string(text))


_CONVERSIONS: dict[str, Callable[..., str]] = {
    "tree": _from_tree,
    "brackets": _from_brackets,
    "nested": nested.from_nested,
    "dict": nested.from_dict,
    "json": nested.from_json,
    "nltk": nested.from_nltk,
    "xml": markup.from_xml,
    "html": markup.from_html,
    "ast": code.from_ast,
    "tree-sitter": code.from_tree_sitter,
    "spacy": dependencies.from_spacy,
    "stanza": dependencies.from_stanza,
    "conllu": dependencies.from_conllu,
}

KINDS = tuple(_CONVERSIONS)
"""The kinds that :func:`tree` knows."""


def tree(obj: Any, *, kind: str | None = None, **options: Any) -> Tree:
    """Makes an :class:`espalier.Tree` of whatever holds a tree.

    ``kind`` says what ``obj`` is, and is found out if it is not given. Each kind has its own options:

    ``"tree"``
        A :class:`Tree`, as it is, or that of a pair of :func:`espalier.read_code`.
    ``"brackets"``
        A string ``(S (NP she) (VP sleeps))``.
    ``"nested"``
        Tuples or lists ``(label, child, ...)``; a child is such a tuple or list, a string, a number or a :class:`Tree`.
    ``"dict"``
        ``{"label": ..., "children": [...]}``; a child is such a dict, a string or a number. Other keys are passed over.
        ``label`` and ``children`` are options for other names of the two keys.
    ``"json"``
        A JSON document, as text or as dicts and lists. An object is a node ``object`` with a node for each key over
        its value, an array is a node ``array``, other values are leaves; an empty string is the leaf ``""``.
        ``values``: ``"keep"``, ``"abstract"`` (their types) or ``"drop"``. ``sort``: whether keys are put in order,
        which they do not have in JSON; true unless told.
    ``"nltk"``
        An ``nltk.Tree``. Tagged words ``(word, tag)`` become ``(tag word)``, and an outermost empty label is taken off.
    ``"xml"``
        An element of ``xml.etree`` or lxml, or text: a node for each tag. ``attributes``: ``"drop"`` (unless told),
        ``"keep"``: ``(@name value)``, in the order of names, or ``"abstract"``: ``@name`` alone. ``text``: ``"drop"``
        (unless told), ``"keep"``: a leaf for each stretch, with single blanks, ``"words"``: a leaf for each word, or
        ``"abstract"``: a leaf ``text``. ``namespaces``: whether tags keep them; false unless told.
    ``"html"``
        The text of a page that starts with its doctype or ``<html>`` (say ``kind="html"`` for parts of pages), or a Tag
        of BeautifulSoup. ``attributes`` and ``text`` as for XML.
    ``"ast"``
        A node of Python's ``ast``, or source (say ``kind="ast"`` then). ``fields``: whether the names of fields are
        nodes between a node and its parts; without them trees are smaller, but some different programs look the same.
        ``names`` and ``constants``: ``"keep"``, ``"abstract"`` (a leaf ``name``; the type of the constant) or
        ``"drop"``.
    ``"tree-sitter"``
        A node or tree of tree-sitter. ``named``: whether only named nodes count, as they do unless told; operators
        have no names in many grammars. ``text``: ``"keep"`` or ``"drop"`` the text of leaves.
    ``"spacy"``, ``"stanza"``, ``"conllu"``
        A dependency parse: a Doc, Span or Token, a Sentence or Document, or the text of one sentence. ``policy``:
        ``"grct"`` (unless told), ``"dep"`` or ``"lct"``, as docs/formats.md describes them. ``word``: ``"form"`` or
        ``"lemma"``; ``tag``: ``"upos"`` or ``"xpos"``; ``relation``: ``"full"`` or ``"plain"``, without subtypes.
        Several roots or sentences come under a node ``ROOT``. Sentences of the package conllu are taken, too.

    What holds no tree is a ``ValueError``, and so are labels that text cannot hold: empty ones, and those with NUL
    or lone surrogates. An option that the kind does not have is a ``TypeError``. Depth has no limit, but parsers of
    Python (``json``, ``ast``) have.

    >>> import ast, espalier
    >>> print(espalier.tree(("S", ("NP", "she"), ("VP", "sleeps"))))
    (S (NP she) (VP sleeps))
    >>> print(espalier.tree({"label": "S", "children": [{"label": "NP", "children": ["she"]}, "sleeps"]}))
    (S (NP she) sleeps)
    >>> print(espalier.tree('{"name": "A cat", "legs": [4, true]}'))
    (object (legs (array 4 true)) (name A\\ cat))
    >>> print(espalier.tree("<p class='x'>A <b>big</b> cat</p>", text="words", attributes="keep"))
    (p (@class x) A (b big) cat)
    >>> print(espalier.tree(ast.parse("x = y + 1").body[0]))
    (Assign (targets (Name x)) (value (BinOp (left (Name y)) (op Add) (right (Constant 1)))))
    >>> print(espalier.tree("x = y + 1", kind="ast", fields=False, names="abstract", constants="drop"))
    (Module (Assign (Name name) (BinOp (Name name) Add Constant)))
    """
    if type(obj) is Tree and kind in (None, "tree") and not options:
        return obj
    if kind is None:
        kind = _known_kind_of(obj)
    return Tree._from_canonical(_convert(obj, kind, options))


def to_brackets(obj: Any, *, kind: str | None = None, **options: Any) -> str:
    """The bracket text of what :func:`tree` accepts. A string that starts with ``(`` is given back as it is, unread:
    who reads it next finds its mistakes.

    >>> to_brackets(["NP", "a", "cat"])
    '(NP a cat)'
    """
    if kind is None:
        kind = _known_kind_of(obj)
        if kind == "brackets" and not options:
            return str(obj)
    return _convert(obj, kind, options)


def kind_of(obj: Any) -> str | None:
    """Which kind of :data:`KINDS` an object is; None if it is no tree. A list is ``"nested"``, whatever is in it: a
    list of tokens looks like a tree too.

    >>> kind_of("(A b)"), kind_of({"a": [1]}), kind_of(7)
    ('brackets', 'json', None)
    """
    if isinstance(obj, (Tree, Unit)):
        return "tree"
    if isinstance(obj, str):
        return _kind_of_text(obj)
    if callable(getattr(type(obj), "serialize", None)) and hasattr(obj, "metadata"):
        return "conllu"
    if isinstance(obj, (list, tuple)):
        return "nltk" if isinstance(obj, list) and callable(getattr(obj, "label", None)) else "nested"
    if isinstance(obj, Mapping):
        return "dict" if nested.looks_like_node(obj) else "json"
    if isinstance(obj, ast.AST):
        return "ast"
    return _kind_of_object(obj)


def _kind_of_text(text: str) -> str | None:
    start = text[:1] if text[:1] not in BLANKS else text.lstrip(BLANKS)[:1]
    if start == "(":
        return "brackets"
    if start == "<":
        return "html" if text.lstrip(BLANKS)[:14].lower().startswith(("<!doctype html", "<html")) else "xml"
    if start and start in "{[":
        return "json"
    return "conllu" if dependencies.looks_like_conllu(text) else None


def _kind_of_object(obj: Any) -> str | None:
    def has(*names: str) -> bool:
        # Asked of the class: some properties of spaCy's objects fail with other errors than AttributeError.
        return all(hasattr(type(obj), name) or name in getattr(obj, "__dict__", ()) for name in names)

    if has("contents", "attrs", "name"):
        return "html"
    if has("getroot") or has("tag", "attrib", "tail"):
        return "xml"
    if has("root_node") or has("type", "children", "named_children"):
        return "tree-sitter"
    if has("head", "dep_", "subtree") or has("sents", "__iter__"):
        return "spacy"
    if has("sentences") or has("words", "dependencies"):
        return "stanza"
    return None


def _known_kind_of(obj: Any) -> str:
    kind = kind_of(obj)
    if kind is not None:
        return kind
    if isinstance(obj, str):
        raise ValueError(
            f"the string {shorten(obj)} is no tree; a tree starts with '(', as in '(S (NP she) (VP sleeps))'"
        )
    if isinstance(obj, (bytes, bytearray)):
        raise ValueError("bytes are no tree; decode them to a string first")
    what = "None" if obj is None else f"a value {shorten(obj)}"
    raise ValueError(f"{what} is no tree; espalier.tree describes what is")


def _convert(obj: Any, kind: str, options: dict[str, Any]) -> str:
    conversion = _CONVERSIONS.get(kind)
    if conversion is None:
        raise ValueError(f"kind={kind!r} is not known; it may be {', '.join(map(repr, KINDS))}")
    allowed = getattr(conversion, "__kwdefaults__", None) or {}
    for name in options:
        if name not in allowed:
            has = f"its options are {', '.join(allowed)}" if allowed else "it has none"
            raise TypeError(f"{name!r} is no option of trees of the kind {kind!r}; {has}")
    try:
        return conversion(obj, **options)
    except (AttributeError, TypeError) as error:  # it lacks what objects of this kind have
        raise ValueError(f"a value {shorten(obj)} is not of the kind {kind!r}: {error}") from error
