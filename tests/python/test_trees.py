"""The class Tree, bracket text, and their documentation."""

from __future__ import annotations

import copy
import doctest
import gc
import importlib
import itertools
import pickle
import random

import pytest

from espalier import Tree
from espalier._trees import to_brackets, tree
from espalier.trees.text import parse, quote, unquote, write

DEEP = 100_000

# Everything that text treats in a special way, and some that it must not.
LETTERS = "ab()\\ \t\n\r\v\f-/|#\"'[]{}\u00a0\u2028\u3000\u0301\u00e9\u65e5\ud7ff\ue000\uffff\U0001f332\x01\x1c\x85\x7f"


def random_label(rng: random.Random) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 6)))


def random_tree(rng: random.Random, nodes: int) -> Tree:
    """Built from the leaves up, so that shapes range from paths to stars."""
    parts = [Tree(random_label(rng)) for _ in range(max(1, nodes))]
    while len(parts) > 1:
        count = rng.randint(1, min(4, len(parts) - 1))
        children = [parts.pop(rng.randrange(len(parts))) for _ in range(count)]
        parts[rng.randrange(len(parts))] = Tree(random_label(rng), children)
    return parts[0]


def slow_read(text: str) -> list:
    """A reader of brackets that follows docs/formats.md character by character and recurses."""

    def token(at: int) -> tuple[str, int]:
        out = ""
        while text[at] not in "() \t\n\r\v\f":
            if text[at] == "\\" and text[at + 1] in "() \t\n\r\v\f\\":
                at += 1
            out += text[at]
            at += 1
        return out, at

    def node(at: int) -> tuple[list, int]:
        label, at = token(at + 1)
        out: list = [label]
        while text[at] != ")":
            if text[at] in " \t\n\r\v\f":
                at += 1
            elif text[at] == "(":
                child, at = node(at)
                out.append(child)
            else:
                leaf, at = token(at)
                out.append([leaf])
        return out, at + 1

    return node(0)[0]


def as_lists(t: Tree) -> list:
    return [t.label, *map(as_lists, t.children)]


@pytest.mark.parametrize(
    "module", ["_trees", "_svg", "trees.text", "trees.tree", "trees.nested", "trees.code", "trees.dependencies"]
)
def test_examples_in_the_documentation(module: str) -> None:
    assert doctest.testmod(importlib.import_module("espalier." + module)).failed == 0


def test_tree_has_what_it_was_given() -> None:
    t = Tree("S", [Tree("NP", ["a", "cat"]), "sleeps"])
    assert (t.label, len(t), t.leaves()) == ("S", 5, ["a", "cat", "sleeps"])
    assert [child.label for child in t.children] == ["NP", "sleeps"]
    assert [node.label for node in t.walk()] == ["S", "NP", "a", "cat", "sleeps"]
    assert str(t) == "(S (NP a cat) sleeps)"
    assert eval(repr(t)) == t


def test_tree_does_not_change() -> None:
    t = Tree("A", ["b"])
    for name in ("label", "children", "other"):
        with pytest.raises(AttributeError):
            setattr(t, name, "c")
    assert isinstance(t.children, tuple)


def test_equal_trees() -> None:
    one, two = Tree.from_string("( (A(b) (c d)) )"), Tree("A", ["b", Tree("c", ["d"])])
    assert one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert one != Tree("A", ["b", "c", "d"]) and one != "(A b (c d))"
    assert tree(one) is one
    assert copy.deepcopy(one) is one and copy.copy(one) is one
    assert pickle.loads(pickle.dumps(one)) == two


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("(A)", "(A)"),
        ("((A))", "(A)"),
        (" ( A\n\tb )\n", "(A b)"),
        ("(A(B(c)))", "(A (B c))"),
        (r"(B\ C \))", r"(B\ C \))"),
        (r"(Q 1\/2)", r"(Q 1\/2)"),
        (r"(Q a\\)", r"(Q a\\)"),
        (r"(Q \\\a)", r"(Q \\\a)"),
        (r"(Q \\a)", r"(Q \a)"),
        ("(A \u00a0)", "(A \u00a0)"),
    ],
)
def test_reading(text: str, same: str) -> None:
    assert str(Tree.from_string(text)) == same


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("(A ())", 5, "empty brackets; a node needs a label"),
        ("(A ((B) c))", 10, "a bracket without a label inside a tree"),
        ("((A) (B))", 9, "a bracket without a label around several trees; it may hold one"),
        (")", 1, "a bracket closes that was never opened"),
        ("  x", 3, "a tree starts with '('"),
        ("(A (B c", 8, "the text ends inside a tree; closing brackets missing: 2"),
        ("(A b\\", 6, "the text ends inside a tree; closing brackets missing: 1"),
        ("(A b) (C d)", 7, "something stands behind the tree; one string holds one tree"),
        ("(A b))", 6, "something stands behind the tree; one string holds one tree"),
        ("(A b\0)", 5, "a NUL character inside a tree"),
        ("(A \\\0)", 5, "a NUL character inside a tree"),
    ],
)
def test_text_that_is_no_tree(text: str, place: int, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        Tree.from_string(text)
    assert str(caught.value) == f"character {place} of {text!a}: {reason}"


@pytest.mark.parametrize("text", ["", " \n"])
def test_text_without_anything(text: str) -> None:
    with pytest.raises(ValueError, match="the text is empty"):
        Tree.from_string(text)


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("", "empty label"),
        ("a\0b", "a NUL character at position 1"),
        ("\ud800", r"the lone surrogate U\+D800 at position 0"),
    ],
)
def test_labels_that_text_cannot_hold(label: str, reason: str) -> None:
    for make in (
        lambda: Tree(label),
        lambda: Tree("A", [label]),
        lambda: tree(("A", ("B", label))),
        lambda: tree([label]),
    ):
        with pytest.raises(ValueError, match=reason):
            make()


@pytest.mark.parametrize(("label", "children"), [(3, ()), (None, ()), ("A", "bc"), ("A", [1]), ("A", [None])])
def test_parts_that_make_no_tree(label: object, children: object) -> None:
    with pytest.raises(ValueError):
        Tree(label, children)  # type: ignore[arg-type]


def test_random_labels_are_quoted_and_read_back() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        label = random_label(rng)
        assert unquote(quote(label)) == label
        assert slow_read(f"({quote(label)} {quote(label)})") == [label, [label]]


def test_random_trees_are_written_and_read_back() -> None:
    rng = random.Random(2)
    for size in range(1, 200):
        t = random_tree(rng, size)
        text = str(t)
        assert slow_read(text) == as_lists(t)
        again = Tree.from_string(text)
        assert again == t and as_lists(again) == as_lists(t)
        assert str(Tree("x", again.children)) == write(["x", *as_lists(t)[1:]], lambda item: (item[0], item[1:]))


def test_random_text_is_read_or_refused() -> None:
    rng = random.Random(3)
    read = 0
    for _ in range(20_000):
        text = "(" + "".join(rng.choice("()ab \\\\\n\0") for _ in range(rng.randint(0, 10)))
        try:
            t = Tree.from_string(text)
        except ValueError:
            continue
        read += 1
        assert Tree.from_string(str(t)) == t
    assert read > 50


def test_parser_calls_children_before_parents() -> None:
    order: list[str] = []
    parse("(A (B c) d)", lambda label, children: order.append(label))
    assert order == ["c", "B", "d", "A"]


def test_deep_trees() -> None:
    text = "(a " * DEEP + "b" + ")" * DEEP
    t = Tree.from_string(text)
    assert str(t) == text and len(t) == DEEP + 1 and t.leaves() == ["b"]
    assert hash(t) == hash(Tree.from_string(text)) and t == pickle.loads(pickle.dumps(t))
    assert len(t._repr_svg_()) < 100_000
    node = Tree("b")
    for _ in range(DEEP):
        node = Tree("a", [node])
    assert node == t
    del node, t
    gc.collect()


def test_wide_trees() -> None:
    t = Tree("a", ["b"] * DEEP)
    assert len(t) == DEEP + 1 and Tree.from_string(str(t)) == t


def test_bracket_strings_pass_unread() -> None:
    text = "( (A  b) )"
    assert to_brackets(text) is text
    assert to_brackets(tree(text)) == "(A b)"


def test_pictures_in_notebooks() -> None:
    from xml.etree import ElementTree

    rng = random.Random(4)
    for size in (1, 2, 30, 299, 300, 301, 2000):
        t = random_tree(rng, size)
        svg = t._repr_svg_()
        root = ElementTree.fromstring(svg)  # well-formed, whatever the labels are
        assert root.tag.endswith("svg") and "currentColor" in svg
        assert ("nodes shown" in svg) == (len(t) > 300 or svg.count("\u22ef") > 0)
        assert t._repr_html_().startswith("<div")


def test_neighbours_in_a_picture_do_not_overlap() -> None:
    from espalier._svg import arrange

    rng = random.Random(5)
    for size in range(1, 120, 7):
        layout = arrange(random_tree(rng, size))
        rows: dict[int, list[tuple[float, float]]] = {}
        for node in layout.nodes:
            rows.setdefault(node.y, []).append((node.x - node.width / 2, node.x + node.width / 2))
        for row in rows.values():
            assert all(a[1] < b[0] for a, b in itertools.pairwise(row))
            assert row[0][0] >= -1e-9 and row[-1][1] <= layout.width + 1e-9


def test_contributions_colour_nodes() -> None:
    from espalier._svg import NEGATIVE, POSITIVE, tree_svg

    t = Tree("A", ["b", "c"])
    svg = tree_svg(t, [1.0, -0.5, 0.0])
    assert svg.count("<rect") == 2 and POSITIVE in svg and NEGATIVE in svg
    assert "<rect" not in tree_svg(t, [0, 0, 0])
    with pytest.raises(ValueError, match="2 contributions for a tree of 3 nodes"):
        tree_svg(t, [1, 2])
    with pytest.raises(ValueError, match="not finite"):
        tree_svg(t, [1, 2, float("nan")])


def test_table_of_a_model() -> None:
    from espalier._svg import model_html

    page = model_html("kernel\tnorm(sst)\nclass\t<a>\nclass\tb & c\nbytes\t12\n", "SVC")
    assert "<caption" in page and "SVC" in page
    assert page.count("<tr>") == 3 and "&lt;a&gt;, b &amp; c" in page
