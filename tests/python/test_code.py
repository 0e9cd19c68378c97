"""Source code as trees."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import espalier

pytest.importorskip("tree_sitter")

ROOT = Path(__file__).resolve().parents[2]


def source(folder: Path, language: str, text: str | bytes, **policy: Any) -> list[str]:
    """The trees of a source text."""
    pytest.importorskip(f"tree_sitter_{language}")
    path = folder / "source.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [str(tree) for _, tree in espalier.read_code(path, language, **policy)]


def statement(folder: Path, language: str, text: str, **policy: Any) -> str:
    """The tree of a statement in a function."""
    wrapped = f"void f(void) {{ {text} }}" if language == "c" else f"def f():\n    {text}\n"
    (tree,) = source(folder, language, wrapped, **policy)
    return tree


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("python", "x == 1", "x != 1"),
        ("python", "x and y", "x or y"),
        ("python", "x is y", "x is not y"),
        ("python", "x[1:]", "x[:1]"),
        ("python", "x[1::2]", "x[1:2]"),
        ("python", "x[::1]", "x[:1:]"),
        ("python", "x += 1", "x -= 1"),
        ("python", "yield x", "yield from x"),
        ("python", "async with x: y", "with x: y"),
        ("python", "from . import x", "from .. import x"),
        ("python", "x('a')", "x(b'a')"),
        ("python", "x(*y)", "x(**y)"),
        ("c", "x = a < b;", "x = a <= b;"),
        ("c", "x++;", "x--;"),
        ("c", "++x;", "x++;"),
        ("c", "x.y;", "x->y;"),
        ("c", "static int x;", "extern int x;"),
        ("c", "unsigned x;", "signed x;"),
        ("c", "struct a *x;", "union a *x;"),
        ("c", "for (x;;) y;", "for (;x;) y;"),
        ("c", "for (;x;) y;", "for (;;x) y;"),
        ("c", "for (int i = 0; x;) y;", "for (int i = 0;; x) y;"),
        ("c", "int x[2][3];", "int x[2];"),
        ("c", "x = *y;", "x = &y;"),
    ],
)
def test_different_programs_differ(tmp_path, language, one, other):
    assert statement(tmp_path, language, one) != statement(tmp_path, language, other)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("python", "x = f(1, 2)", "x = f( 1,2, ) # so"),
        ("python", "x = [1]", "x = [\n        1,\n    ]"),
        ("c", "x = f(a, b); /* so */", "x=f(a,b);"),
        ("c", "if (x) { y; }", "if (x)\n{\n    y;\n}"),
    ],
)
def test_layout_and_comments_do_not_matter(tmp_path, language, one, other):
    assert statement(tmp_path, language, one) == statement(tmp_path, language, other)


def test_by_hand(tmp_path):
    text = "int sum(int n) { /* all */ return n == 1 ? n : 'a' + \"b\"; }"
    start = "(function_definition (primitive_type int) (function_declarator (identifier {}) (parameter_list "
    start += "(parameter_declaration (primitive_type int) (identifier {})))) (compound_statement {}(return_statement "
    start += "(conditional_expression (binary_expression (identifier {}) == {}) ? (identifier {}) "
    start += "(binary_expression {} + {})))))"
    kept = source(tmp_path, "c", text)
    assert kept == [
        start.format("sum", "n", "", "n", "(number_literal 1)", "n", "(char_literal 'a')", '(string_literal "b")')
    ]
    (tree,) = source(tmp_path, "c", text, names="number", constants="abstract", comments="abstract")
    literals = [f"({kind}_literal constant)" for kind in ("number", "char", "string")]
    assert tree == start.format("v1", "v2", "comment ", "v2", literals[0], "v2", *literals[1:])
    (tree,) = source(tmp_path, "c", text, names="abstract", constants="drop", comments="keep")
    literals = [f"{kind}_literal" for kind in ("number", "char", "string")]
    assert tree == start.format(*["name"] * 2, r"(comment /*\ all\ */) ", "name", literals[0], "name", *literals[1:])
    (tree,) = source(tmp_path, "c", text, names="drop")
    assert "(function_declarator identifier " in tree


def test_numbered_names_are_consistent(tmp_path):
    one, other, swapped = (
        source(tmp_path, "python", text, names="number")
        for text in ("def f(a, b): return a - b", "def g(x, y): return x - y", "def g(x, y): return y - x")
    )
    assert one == other != swapped


def test_java_methods(tmp_path):
    text = "abstract class A { A() {} int f() { return 1; } abstract void g(); class B { void h() {} } }"
    assert [tree.split(" ")[0] for tree in source(tmp_path, "java", text)] == [
        "(constructor_declaration",
        "(method_declaration",
        "(method_declaration",
    ]


def test_functions_inside_of_functions_are_parts(tmp_path):
    text = "class A:\n    def f(self):\n        def g(): pass\n        return g\n\ndef h(): pass\n"
    pytest.importorskip("tree_sitter_python")
    (tmp_path / "a.py").write_text(text)
    assert [name for name, _ in espalier.read_code(tmp_path / "a.py", "python")] == [
        f"{tmp_path}/a.py:2-4",
        f"{tmp_path}/a.py:6-6",
    ]


def test_names_of_units(tmp_path, monkeypatch):
    pytest.importorskip("tree_sitter_c")
    for name in ("b/x.c", "a.h", ".hidden/x.c", "(odd) \u00e9.c", "b/other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("int f() { return 1; } int g() { return 2; }\n\nint h()\n{\n}\n")
    monkeypatch.chdir(tmp_path)
    names = [name for name, _ in espalier.read_code(".", "C")]
    each = [":1-1", ":1-1:23", ":3-5"]
    assert names == [path + lines for path in ("./(odd) \u00e9.c", "a.h", "b/x.c") for lines in each]
    assert [name for name, _ in espalier.read_code(["b", "b/x.c", "./a.h"], "c", unit="file")] == ["b/x.c", "a.h"]
    assert [name for name, _ in espalier.read_code(".", "c", unit="file", suffixes=".py")] == ["b/other.py"]


def test_errors_are_counted_and_kept_or_skipped(tmp_path):
    pytest.importorskip("tree_sitter_c")
    path = tmp_path / "a.c"
    path.write_bytes(b'int f() { return 1 +; }\nint g() { x @ \x00\xff; y }\nint h() { return "\xff"; }\n')
    kept = espalier.read_code(path, "c")
    trees = [str(tree) for _, tree in kept]
    assert len(trees) == 3 and "(MISSING identifier)" in trees[0] and "ERROR" in trees[1] and "\\xff" in trees[2]
    assert (kept.files, kept.units, kept.broken, kept.skipped) == (1, 3, 2, 0) and kept.errors >= 3
    assert len(list(kept)) == kept.units == 3
    skipped = espalier.read_code(path, "c", errors="skip")
    assert [name for name, _ in skipped] == [f"{path}:3-3"]
    assert (skipped.files, skipped.units, skipped.broken, skipped.skipped) == (1, 1, 2, 2)
    whole = espalier.read_code(path, "c", unit="file", errors="skip")
    assert list(whole) == [] and whole.skipped == 1
    for _, tree in espalier.read_code(path, "c", unit="file"):
        assert espalier.Tree.from_string(str(tree)) == tree


@pytest.mark.parametrize(
    ("language", "text", "units"),
    [
        ("python", "def ok(x):\n    return x\n\ndef f(x:\n    return x\n\ndef g(y):\n    return y\n", 2),
        ("c", "int f(int x) { if (x) { return 1;\n", 0),
        ("c", bytes(random.Random(1).randbytes(500)), 0),
    ],
)
def test_errors_outside_of_functions_are_counted(tmp_path, language, text, units):
    pytest.importorskip(f"tree_sitter_{language}")
    whole = tmp_path / "whole"
    whole.write_text("def h(): pass\n" if language == "python" else "int h() { return 1 +; }\n")
    path = tmp_path / "source"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for errors in ("keep", "skip"):
        code = espalier.read_code([path, whole], language, errors=errors)
        given = list(code)
        assert code.broken == (language == "c") and len(given) + code.skipped == units + 1
        assert (code.files, code.broken_files) == (2, 1) and code.outside >= 1
        assert list(espalier.read_code(whole, language)) and list(code) == given and code.broken_files == 1
    by_file = espalier.read_code([path], language, unit="file")
    assert len(list(by_file)) == by_file.broken == 1 and by_file.broken_files == by_file.outside == 0
    assert by_file.errors >= code.outside


@pytest.mark.parametrize("least", [0, 20, 120])
def test_counts_are_those_of_units_that_are_large_enough(tmp_path, least):
    pytest.importorskip("tree_sitter_c")
    long = "x = 1; " * 30
    text = f'int f() {{ return 1 +; }}\nint g() {{ {long} y @; }}\nint h() {{ {long} }}\nint s() {{ {long} x = "a; }}\n'
    (tmp_path / "a.c").write_text(text)
    counts = []
    for errors in ("keep", "skip"):
        code = espalier.read_code(tmp_path, "c", errors=errors, min_nodes=least)
        assert len(list(code)) == code.units
        assert code.skipped == (code.broken if errors == "skip" else 0)
        counts.append((code.units + code.skipped, code.broken, code.errors))
    assert counts[0] == counts[1] and counts[0][1] >= 1 and counts[0][2] >= counts[0][1]


def test_empty_and_binary_files(tmp_path):
    assert source(tmp_path, "c", b"") == []
    assert source(tmp_path, "c", b"", unit="file") == ["(translation_unit)"]
    (tree,) = source(tmp_path, "python", bytes(range(256)) * 4, unit="file")
    espalier.Tree.from_string(tree)


def test_deep_source(tmp_path):
    (tree,) = source(tmp_path, "c", "int f() { return " + "(" * 20000 + "1" + ")" * 20000 + "; }")
    assert tree.count("parenthesized_expression") == 20000


def test_min_nodes(tmp_path):
    pytest.importorskip("tree_sitter_c")
    path = tmp_path / "a.c"
    path.write_text('int f() { return 1; }\nint g() { f("a b", "\\\\"); if (x) return 2; }\n')
    sizes = {name: len(tree) for name, tree in espalier.read_code(path, "c")}
    for least in range(1, 50):
        found = [name for name, _ in espalier.read_code(path, "c", min_nodes=least)]
        assert found == [name for name, size in sizes.items() if size >= least]


def test_into_files_and_indices(tmp_path):
    pytest.importorskip("tree_sitter_python")
    path = tmp_path / "a.py"
    path.write_text("def f(a, b):\n    return a - b\n\ndef g(x, y):\n    return x - y\n\ndef h(): pass\n")
    code = espalier.read_code(path, "python", names="number")
    target = tmp_path / "code.jsonl"
    assert code.to_jsonl(target) is code and code.units == 3
    assert [json.loads(line) for line in target.read_text().splitlines()] == [
        {"id": name, "tree": str(tree)} for name, tree in code
    ]
    index = espalier.Index("norm(sst(tree))", id="id").fit(code)
    assert index.ids_ == [f"{path}:1-2", f"{path}:4-5", f"{path}:7-7"]
    assert index.pairs(0.9) == [(0, 1, 1.0)]
    assert index.search(code, top=1).example.tolist() == [0, 0, 2]
    again = espalier.Index("norm(sst(tree))", id="id").fit(target)
    again.save(tmp_path / "one.index")
    index.save(tmp_path / "other.index")
    assert (tmp_path / "one.index").read_bytes() == (tmp_path / "other.index").read_bytes()


def test_functions_are_their_trees_everywhere(tmp_path):
    """What read_code gives and its pairs, not nested trees with the id as root."""
    pytest.importorskip("tree_sitter_python")
    path = tmp_path / "a.py"
    path.write_text("def f(x):\n    return x == 1\n\ndef g(x):\n    return x != 1\n\ndef h(): pass\n")
    code = espalier.read_code(path, "python")
    pairs, trees = list(code), [tree for _, tree in code]
    assert pairs[0] == (f"{path}:1-2", trees[0]) and pairs[0].id == f"{path}:1-2" and pairs[0].tree == trees[0]
    table = {"id": [pair.id for pair in pairs], "tree": trees}
    sources = (lambda: code, lambda: pairs, lambda: iter(code))
    for expression in ("norm(sst)", "norm(sst(tree))"):
        K = espalier.Kernel(expression)
        expected = K(trees)
        for source in (*sources, lambda: code.rows(), lambda: list(code.rows()), lambda: table):
            assert (K(source()) == expected).all() and (K(trees, source()) == K(trees, list(trees))).all()
            assert (K.diag(source()) == 1).all() and (K.distance(source()) == K.distance(trees)).all()
            index = espalier.Index(expression).fit(source())
            assert index.pairs(0.1) == espalier.Index(expression).fit(trees).pairs(0.1)
            hits = index.search(source(), 1)
            assert hits.example.tolist() == [0, 1, 2] and hits.similarity.tolist() == [1, 1, 1]
            gram = espalier.GramTransformer(kernel=expression).fit(source())
            assert (pickle.loads(pickle.dumps(gram)).transform(trees) == K(trees, list(trees))).all()
        for source in (lambda: code, lambda: pairs, lambda: iter(code), lambda: code.rows()):
            index = espalier.Index(expression, id="id").fit(source())
            assert index.ids_ == [pair.id for pair in pairs]
            assert index.add(espalier.read_code([path], "python", unit="file")).n_samples_fit_ == 4
            assert index.search(source(), 1).similarity.tolist() == [1, 1, 1]
        assert K(pairs[0], pairs[1]) == K(trees[0], trees[1])
        plain = espalier.SVC(kernel=expression).fit(trees, [0, 1, 1])
        for source in (lambda: code, lambda: pairs, lambda: iter(code)):
            model = espalier.SVC(kernel=expression).fit(source(), [0, 1, 1])
            assert (model.decision_function(source()) == plain.decision_function(trees)).all()
    assert espalier.tree(pairs[0]) == trees[0] and (espalier.Kernel("norm(sst)")([pairs[0], trees[1]]) < 1.1).all()
    with pytest.raises(ValueError, match="a list of examples is needed"):
        espalier.Kernel("norm(sst)").diag(pairs[0])
    with pytest.raises(ValueError, match=r"one column of trees: X\[:, 1\]"):
        espalier.Kernel("norm(sst)")(np.array(pairs, dtype=object))
    with pytest.raises(ValueError, match="without y, a pair of an example and its target"):
        espalier.SVC(kernel="norm(sst)").fit(iter(code))
    with pytest.raises(ValueError, match="name"):
        espalier.Index("norm(sst)", id="name").fit(code)


def test_a_file_of_nothing_is_warned_about(tmp_path):
    pytest.importorskip("tree_sitter_python")
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.warns(UserWarning, match="code.jsonl is empty: no function was found in 1 files"):
        espalier.read_code(tmp_path / "a.py", "python").to_jsonl(tmp_path / "code.jsonl")
    assert (tmp_path / "code.jsonl").read_bytes() == b""


def test_a_file_is_complete_or_not_there(tmp_path):
    pytest.importorskip("tree_sitter_python")
    (tmp_path / "a.py").write_text("def f(): pass\n")
    code = espalier.read_code(tmp_path, "python")
    (tmp_path / "a.py").unlink()
    with pytest.raises(FileNotFoundError):
        code.to_jsonl(tmp_path / "code.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused(tmp_path):
    pytest.importorskip("tree_sitter_c")
    import tree_sitter
    import tree_sitter_c

    grammar = tree_sitter.Language(tree_sitter_c.language())
    (tmp_path / "a.c").write_text("int f() { return 1; }\n")
    assert len(list(espalier.read_code(tmp_path / "a.c", grammar))) == 1
    for options in ({"unit": "line"}, {"names": "kind"}, {"constants": 1}, {"comments": ""}, {"errors": "stop"}):
        with pytest.raises(ValueError, match=f"{next(iter(options))}=.* is not known"):
            espalier.read_code(tmp_path, "c", **options)
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        espalier.read_code(tmp_path / "b.c", "c")
    with pytest.raises(ValueError, match="no source files that end in .c, .h"):
        (tmp_path / "empty").mkdir()
        espalier.read_code(tmp_path / "empty", "c")
    wrongs: list[Any] = [-1, "x", 1.5, None]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="min_nodes is .*; allowed is a whole number >= 0"):
            espalier.read_code(tmp_path, "c", min_nodes=wrong)
    wrongs = [None, 3, b"a.c", [None], [tmp_path, 3]]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="paths .*; allowed are names of files and folders"):
            espalier.read_code(wrong, "c")
    with pytest.raises(ValueError, match="suffixes must say"):
        espalier.read_code(tmp_path, grammar)
    with pytest.raises(ValueError, match="no name of a language"):
        espalier.read_code(tmp_path, "c; d")
    with pytest.raises(ValueError, match="of type int"):
        espalier.read_code(tmp_path, 3)
    with pytest.raises(ImportError, match="pip install tree-sitter tree-sitter-no-such"):
        espalier.read_code(tmp_path, "no such")


def test_without_tree_sitter():
    code = "import sys; sys.modules['tree_sitter'] = None; import espalier; espalier.read_code('.', 'c')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: read_code needs packages that are not installed: pip install tree-sitter" in done.stderr


def test_own_sources():
    """Files of this repository: what is written is read as the same tree."""
    pytest.importorskip("tree_sitter_c")
    code = espalier.read_code(ROOT / "src" / "base", "c", unit="file")
    for _, tree in code:
        assert espalier.Tree.from_string(str(tree)) == tree
    assert code.files == code.units > 20
