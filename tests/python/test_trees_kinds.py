"""Every kind of tree that espalier.tree knows; libraries that are not installed are stood in for by their likes."""

from __future__ import annotations

import ast
import json
import random
import re
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from espalier._trees import KINDS, kind_of, to_brackets, tree

DEEP = 100_000


def text_of(obj: object, **options: object) -> str:
    return str(tree(obj, **options))  # type: ignore[arg-type]


# ------------------------------------------------------------ nested, dicts


def test_nested() -> None:
    assert text_of(("S", ["NP", "a b"], ("VP", ("V", 3), "x"))) == r"(S (NP a\ b) (VP (V 3) x))"
    assert text_of(["A", tree("(B c)"), ("d",)]) == "(A (B c) d)"


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        ([], "an empty tuple or list"),
        (("A", ()), "an empty tuple or list"),
        ([("A", "b"), "c"], "the first item of a tuple or list is its label"),
        ((None, "a"), "the first item of a tuple or list is its label"),
        (("A", None), "a value of type NoneType is no tree"),
        (("A", {"b": 1}), "a value of type dict is no tree"),
        (None, "None is no tree"),
        (7, "a value of type int is no tree"),
        (float("nan"), "a value of type float is no tree"),
        (b"(A b)", "bytes are no tree"),
        ("a cat", "the string 'a cat' is no tree; a tree starts with"),
        ("", "the string '' is no tree"),
        (object(), "a value of type object is no tree"),
    ],
)
def test_no_trees(obj: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        tree(obj)
    with pytest.raises(ValueError, match=reason):
        to_brackets(obj)


def test_deep_nested() -> None:
    deep: list = ["b"]
    for _ in range(DEEP):
        deep = ["a", deep]
    assert text_of(deep) == "(a " * DEEP + "b" + ")" * DEEP
    bad: list = []
    for _ in range(DEEP):
        bad = [bad]
    with pytest.raises(ValueError, match="the first item of a tuple or list is its label"):
        tree(bad)
    document: dict = {}
    for _ in range(DEEP):
        document = {"a": document}
    assert text_of(document).count("(") == 2 * DEEP


def test_what_contains_itself() -> None:
    nested: list = ["A", "b"]
    nested.append(nested)
    document: dict = {"a": []}
    document["a"].append(document)
    for obj in (nested, document):
        with pytest.raises(ValueError, match="contains itself"):
            tree(obj)
    shared = ["B", "c"]
    assert text_of(["A", shared, shared]) == "(A (B c) (B c))"


def test_dicts() -> None:
    node = {"label": "S", "id": 7, "children": [{"label": "NP", "children": ["she"]}, {"label": "x"}, 3]}
    assert kind_of(node) == "dict"
    assert text_of(node) == "(S (NP she) x 3)"
    named = {"name": "S", "kids": [{"name": "a", "kids": None}]}
    assert text_of(named, kind="dict", label="name", children="kids") == "(S a)"
    with pytest.raises(ValueError, match="no string under the key 'label'; its keys are 'name', 'kids'"):
        tree(named, kind="dict")
    with pytest.raises(ValueError, match="under the key 'children' must be a list"):
        tree({"label": "a", "children": "bc"}, kind="dict")


# --------------------------------------------------------------------- JSON

DOCUMENT = {"b": [1, 2.5, True, None, "x y", ""], "a": {"z": {}, "": "t"}}


def test_json() -> None:
    keep = r'(object (a (object ("" t) (z object))) (b (array 1 2.5 true null x\ y "")))'
    assert (
        text_of(DOCUMENT)
        == keep
        == text_of(json.dumps(DOCUMENT))
        == text_of(json.dumps(DOCUMENT).encode(), kind="json")
    )
    assert text_of({"b": 1, "a": 2}, sort=False) == "(object (b 1) (a 2))"
    abstract = "(array number boolean null string string)"
    assert text_of([1, True, None, "a", ""], kind="json", values="abstract") == abstract
    assert text_of({"a": 1, "b": [1, [2]]}, values="drop") == "(object a (b (array array)))"
    assert text_of("3", kind="json") == "(3)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "the JSON text is wrong at line 1, column 2"),
        ("[1,\n 2", "the JSON text is wrong at line 2"),
        ("[" * DEEP + "]" * DEEP, "nested deeper than Python's json module can read"),
        ('["\\ud800"]', r"the lone surrogate U\+D800"),
        ('["\\u0000"]', "a NUL character"),
    ],
)
def test_json_text_that_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        tree(text)


def test_values_that_json_does_not_have() -> None:
    with pytest.raises(ValueError, match="a value of type set is none of JSON's"):
        tree({"a": {1, 2}})
    with pytest.raises(ValueError, match="not UTF-8"):
        tree(b'["\xff"]', kind="json")


# ---------------------------------------------------------------------- XML

XML = """<n:doc xmlns:n="http://x/y" b="2" a=""><!-- no --><p>One <b>big</b>  cat\n sat</p><?no no?> end <p/></n:doc>"""


def test_xml() -> None:
    assert text_of(XML) == "(doc (p b) p)"
    root = ElementTree.fromstring(XML)
    assert (
        text_of(root) == text_of(ElementTree.ElementTree(root)) == text_of(XML.encode(), kind="xml") == "(doc (p b) p)"
    )
    assert text_of(root, attributes="keep") == "(doc @a (@b 2) (p b) p)"
    assert text_of(root, attributes="abstract") == "(doc @a @b (p b) p)"
    assert text_of(root, text="keep") == r"(doc (p One (b big) cat\ sat) end p)"
    assert text_of(root, text="words") == "(doc (p One (b big) cat sat) end p)"
    assert text_of(root, text="abstract") == "(doc (p text (b text) text) text p)"
    assert text_of(root, namespaces=True) == "({http://x/y}doc (p b) p)"


def test_lxml() -> None:
    etree = pytest.importorskip("lxml.etree")
    root = etree.fromstring(XML)
    assert text_of(root, text="words") == "(doc (p One (b big) cat sat) end p)"
    assert text_of(root.getroottree(), attributes="keep") == "(doc @a (@b 2) (p b) p)"


def test_deep_xml() -> None:
    root = ElementTree.Element("a")
    node = root
    for _ in range(DEEP):
        node = ElementTree.SubElement(node, "a")
    assert text_of(root).count("(") == DEEP


def test_xml_that_is_wrong() -> None:
    with pytest.raises(ValueError, match="the XML text is wrong: "):
        tree("<a><b></a>")
    with pytest.raises(ValueError, match="is no XML element"):
        tree(7, kind="xml")


# ------------------------------------------------------------------- source

SOURCE = """
def f(a, *b, c=1, **d) -> int:
    '''What it does.'''
    if a: x = b[1:]
    else: x = b[:1]
    return x + {**d}["k"] - (yield -1.5)
"""


def test_python_source() -> None:
    node = ast.parse("if a:\n  b = 'x y'")
    assert (
        text_of(node) == r"(Module (If (test (Name a)) (body (Assign (targets (Name b)) (value (Constant 'x\ y'))))))"
    )
    assert text_of(node.body[0], fields=False) == r"(If (Name a) (Assign (Name b) (Constant 'x\ y')))"
    assert text_of(node.body[0], fields=False, names="abstract", constants="abstract") == (
        "(If (Name name) (Assign (Name name) (Constant str)))"
    )
    assert text_of(node.body[0], fields=False, names="drop", constants="drop") == "(If Name (Assign Name Constant))"
    assert text_of("x", kind="ast") == "(Module (Expr (Name x)))"
    assert text_of("global a, b", kind="ast") == "(Module (Global a b))"
    assert text_of("from .. import a as b", kind="ast") == (
        "(Module (ImportFrom (names (alias (name a) (asname b))) (level 2)))"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a[1:]", "a[:1]"),
        ("if a:\n b\n c", "if a:\n b\nelse:\n c"),
        ("def f(a, *, b): 0", "def f(a, b): 0"),
        ("{**a, b: c}", "{a: b, **c}"),
        ("1", "'1'"),
        ("1", "1.0"),
        ("a + b", "a - b"),
        ("import a", "from . import a"),
        ("async def f(): [i async for i in x]", "async def f(): [i for i in x]"),
        ("match x:\n case None: 0", "match x:\n case True: 0"),
        ("f'{a}'", "f'{a!r}'"),
        ("lambda *, a, b=1: 0", "lambda *, a=1, b: 0"),
    ],
)
def test_different_programs_are_different_trees(one: str, other: str) -> None:
    assert text_of(one, kind="ast") != text_of(other, kind="ast")


def test_names_in_every_place_are_abstracted() -> None:
    renamed = re.sub(r"\b[abcdfx]\b", lambda name: name.group() * 2, SOURCE)
    assert text_of(SOURCE, kind="ast") != text_of(renamed, kind="ast")
    assert text_of(SOURCE, kind="ast", names="abstract") == text_of(renamed, kind="ast", names="abstract")


def test_all_modules_of_a_package() -> None:
    import importlib.util
    from pathlib import Path

    found = importlib.util.find_spec("json")
    assert found is not None and found.origin is not None
    for path in Path(found.origin).parent.glob("*.py"):
        t = tree(ast.parse(path.read_bytes()))
        assert str(tree(str(t))) == str(t)


def test_deep_source() -> None:
    node: ast.expr = ast.Name("x")
    for _ in range(DEEP):
        node = ast.UnaryOp(ast.Not(), node)
    assert text_of(node, fields=False) == "(UnaryOp Not " * DEEP + "(Name x)" + ")" * DEEP
    for source in ("-" * DEEP + "1", "(" * DEEP + ")" * DEEP):
        with pytest.raises(ValueError, match="the Python source is "):
            tree(source, kind="ast")


def test_source_that_is_wrong() -> None:
    with pytest.raises(ValueError, match="the Python source is wrong at line 2"):
        tree("a = 1\nb = = 2", kind="ast")
    with pytest.raises(ValueError, match="lone surrogate"):
        tree("a = '\ud800'", kind="ast")
    with pytest.raises(ValueError, match="is no node of Python's ast"):
        tree(7, kind="ast")


class Sitter(SimpleNamespace):
    """Looks like a node of tree-sitter."""

    @property
    def named_children(self) -> list:
        return [child for child in self.children if child.is_named]


def sitter(type: str, *children: Sitter, text: bytes = b"", named: bool = True) -> Sitter:
    return Sitter(type=type, children=list(children), text=text, is_named=named)


def test_tree_sitter() -> None:
    plus = sitter("+", text=b"+", named=False)
    node = sitter("sum", sitter("name", text=b"a b"), plus, sitter("number", text="\u00e9\ud7ff".encode() + b"\xff"))
    assert kind_of(node) == "tree-sitter"
    assert text_of(node) == "(sum (name a\\ b) (number \u00e9\ud7ff\\xff))"
    assert text_of(node, named=False) == "(sum (name a\\ b) + (number \u00e9\ud7ff\\xff))"
    assert text_of(node, text="drop") == "(sum name number)"
    assert text_of(SimpleNamespace(root_node=node), text="drop") == "(sum name number)"


def test_real_tree_sitter() -> None:
    library = pytest.importorskip("tree_sitter")
    python = pytest.importorskip("tree_sitter_python")
    parser = library.Parser(library.Language(python.language()))
    parsed = parser.parse(b"x = y + 1")
    expected = (
        "(module (expression_statement (assignment (identifier x) (binary_operator (identifier y){} (integer 1)))))"
    )
    assert text_of(parsed) == text_of(parsed.root_node) == expected.format("")
    assert expected.format(" +").replace("(identifier x)", "(identifier x) =") == text_of(parsed, named=False)


# --------------------------------------------------------------------- nltk


class Nltk(list):
    """Looks like nltk.Tree."""

    def __init__(self, label: object, children: list) -> None:
        super().__init__(children)
        self._label = label

    def label(self) -> object:
        return self._label


def nltk_trees() -> list:
    try:
        from nltk import Tree
    except ImportError:
        return [Nltk]
    return [Nltk, Tree]


@pytest.mark.parametrize("make", nltk_trees())
def test_nltk(make: type) -> None:
    assert text_of(make("S", [make("NP", ["she"]), "sleeps ("])) == r"(S (NP she) sleeps\ \()"
    assert text_of(make("", [make("S", ["a"])])) == "(S a)"
    assert text_of(make("S", [make("NP", [("a", "DT"), ("cat", "NN")]), ("sat", "VB")])) == (
        "(S (NP (DT a) (NN cat)) (VB sat))"
    )
    with pytest.raises(ValueError, match="a node has an empty label"):
        tree(make("S", [make("", ["a"])]))
    with pytest.raises(ValueError, match="has no label"):
        tree(make(None, ["a"]))
    with pytest.raises(ValueError, match="a leaf is a tuple of 3 items"):
        tree(make("S", [("a", "b", "c")]))
    deep = make("a", ["b"])
    for _ in range(DEEP - 1):
        deep = make("a", [deep])
    assert text_of(deep) == "(a " * DEEP + "b" + ")" * DEEP


# ----------------------------------------------------------------- options


def test_options() -> None:
    with pytest.raises(
        TypeError, match="'names' is no option of trees of the kind 'json'; its options are values, sort"
    ):
        tree({"a": 1}, names="keep")
    with pytest.raises(TypeError, match="'names' is no option of trees of the kind 'brackets'; it has none"):
        to_brackets("(A b)", names="keep")
    with pytest.raises(ValueError, match="values='all' is not known; it may be 'keep', 'abstract' or 'drop'"):
        tree({"a": 1}, values="all")
    with pytest.raises(ValueError, match="policy='x' is not known; it may be 'dep', 'grct' or 'lct'"):
        tree("1\ta\t_\tX\t_\t_\t0\troot\t_\t_", policy="x")
    with pytest.raises(ValueError, match="kind='yaml' is not known; it may be 'tree', 'brackets'"):
        tree("a: b", kind="yaml")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "obj", [None, 7, b"x", object(), [None], {"a": object()}, "\ud800", "\0", Nltk("", []), XML, SOURCE]
)
def test_any_object_of_any_kind_is_a_tree_or_a_sentence(kind: str, obj: object) -> None:
    try:
        assert str(tree(str(tree(obj, kind=kind)))) == text_of(obj, kind=kind)
    except ValueError as error:
        assert len(str(error)) > 10


@pytest.mark.parametrize("kind", ["tree", "brackets", "nltk", "xml", "ast", "tree-sitter", "spacy", "stanza", "conllu"])
def test_objects_of_the_wrong_kind(kind: str) -> None:
    for obj in (7, object(), [None]):
        with pytest.raises(ValueError):
            tree(obj, kind=kind)


def test_random_kinds_agree() -> None:
    """One random tree as tuples, dicts and nltk's makes the same text."""
    rng = random.Random(6)

    def build(depth: int) -> tuple:
        label = rng.choice(["A", "b c", "(", "\\", "\u65e5\u672c"])
        children = [build(depth - 1) for _ in range(rng.randint(0, 3))] if depth else []
        below = ["children", [child[1] for child in children]]
        return (
            (label, *(child[0] for child in children)),
            {"label": label, below[0]: below[1]},
            Nltk(label, [child[2] for child in children]),
        )

    for _ in range(100):
        one, two, three = build(4)
        assert text_of(one) == text_of(two, kind="dict") == text_of(three)


def test_nothing_is_imported() -> None:
    import subprocess

    names = ("nltk", "spacy", "stanza", "tree_sitter", "lxml", "matplotlib")
    code = f"import sys, espalier._trees; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
