"""Explanations against the command line, as sums, as tables and as pictures; reports; data files that are written."""

from __future__ import annotations

import json
import pickle
import xml.dom.minidom

import numpy as np
import pytest
from reference import fragment_count

import espalier
from espalier import SVC, SVR, DagPerceptron, Explanation, GPRegressor, OneClassSVM, load

KERNEL = "norm(sst(tree, lambda=0.4)) + 0.5*norm(linear(words))"


@pytest.fixture(scope="module")
def rows(questions):
    """Trees with their words, and classes."""
    trees, labels = questions
    return [{"tree": tree, "words": tree.replace("(", "").replace(")", "")} for tree in trees], labels


@pytest.fixture(scope="module")
def model(rows):
    return SVC(kernel=KERNEL, C=10).fit(*rows)


@pytest.mark.parametrize("label", [None, "HUM", "LOC"])
def test_an_example_as_on_the_command_line(model, rows, label, tool, tmp_path):
    X, _ = rows
    model.save(tmp_path / "model")
    espalier.write(X[:5], tmp_path / "data.jsonl")
    options = ["--class", label] if label else []
    text = tool(
        "explain",
        "-q",
        "--format",
        "json",
        "--top",
        4,
        "--nodes",
        *options,
        tmp_path / "model",
        tmp_path / "data.jsonl",
    )
    for x, line in zip(X, text.splitlines()):
        told, found = json.loads(line), model.explain(x, label=label, top=4)
        assert (found.label, found.score, found.bias) == (told["class"], told["score"], told["bias"])
        assert [feature.text for feature in found.up] == [feature["text"] for feature in told["up"]]
        assert [feature.contribution for feature in found.down] == [f["contribution"] for f in told["down"]]
        assert found.shares == [node["share"] for node in told["terms"][0]["nodes"]]
        assert str(found.tree) == x["tree"] and found.rest == told["rest"]
    assert len(text.splitlines()) == 5


def test_scores_are_sums(model, rows):
    X, _ = rows
    for x, score in zip(X[:10], model.decision_function(X[:10])):
        found = model.explain(x, top=1000)
        sign = 1 if found.label == "LOC" else -1
        assert found.label == model.predict([x])[0] and sign * found.score == pytest.approx(score, abs=1e-12)
        parts = sum(feature.contribution for feature in (*found.up, *found.down))
        assert found.bias + parts + found.rest == pytest.approx(found.score, abs=1e-9)
        assert found.bias + sum(found.terms.values()) == pytest.approx(found.score, abs=1e-9)
        assert sum(found.shares) == pytest.approx(next(iter(found.terms.values())), abs=1e-9)
        assert len(found.shares) == len(found.tree)


def test_features_occur_in_the_example(model, rows):
    found = model.explain(rows[0][0], top=50)
    for feature in (*found.up, *found.down):
        if feature.kind == "fragment":
            assert fragment_count(feature.text, rows[0][0]["tree"]) > 0
        assert feature.contribution == pytest.approx(feature.weight * feature.value)


def test_a_model_as_on_the_command_line(model, tool, tmp_path):
    model.save(tmp_path / "model")
    for sign in ("both", "for", "against"):
        lines = tool("explain", "-q", "--sign", sign, "--top", 5, tmp_path / "model").splitlines()
        table = model.explain(top=5, sign=sign).table()
        assert [(row["label"], row["weight"], row["text"], row["term"]) for row in table] == [
            (line[0], float(line[1]), line[3], line[4]) for line in (text.split("\t") for text in lines)
        ]
    against = model.explain(label="HUM", top=5, sign="for").features["HUM"]
    assert [f.weight for f in against] == [-f.weight for f in model.explain(top=5, sign="against").features["LOC"]]


def test_tables(model, rows):
    found = model.explain(rows[0][0], top=3)
    table = found.table()
    assert len(table) == len(found.up) + len(found.down) and {row["label"] for row in table} == {found.label}
    assert table[0]["text"] == found.up[0].text and table[0]["contribution"] == found.up[0].contribution
    frame = pytest.importorskip("pandas").DataFrame(table)
    assert frame["contribution"].tolist() == [row["contribution"] for row in table]


def test_pictures(model, rows):
    found = model.explain(rows[0][0], top=3)
    page = xml.dom.minidom.parseString(f"<div>{found._repr_html_()}</div>")
    tree = page.getElementsByTagName("svg")[0]
    coloured = [rect for rect in tree.getElementsByTagName("rect") if rect.getAttribute("fill").startswith("#")]
    assert len(coloured) == sum(share != 0 for share in found.shares)
    assert len(page.getElementsByTagName("tr")) == 6 and len(page.getElementsByTagName("code")) == 6
    assert found.label in repr(found) and found.up[0].text in str(found)
    page = xml.dom.minidom.parseString(f"<div>{model.explain(top=2)._repr_html_()}</div>")
    assert len(page.getElementsByTagName("tr")) == 4  # two of each term


def test_pictures_escape_texts():
    odd = SVC(kernel="norm(linear)", C=10).fit(["<b> x", "<b> <i>", "c & d", "c"], [0, 0, 1, 1])
    found = odd.explain("<b> & x")
    xml.dom.minidom.parseString(f"<div>{found._repr_html_()}</div>")
    assert found.tree is None and found.shares is None


def test_plots_take_explanations(model, rows):
    pytest.importorskip("matplotlib").use("Agg")
    from espalier import plot

    found = model.explain(rows[0][0])
    labels = [text.get_text() for text in plot.tree(found).texts]
    assert sorted(labels) == sorted(node.label for node in found.tree.walk())
    ax = plot.tree(rows[0][0]["tree"], contributions=found)
    shown = sum(text.get_bbox_patch().get_alpha() != 0 for text in ax.texts)
    assert shown == len(labels)
    with pytest.raises(ValueError, match="the explanation has no tree"):
        plot.tree(model.explain(rows[0][0], nodes=False))


def test_other_learners(questions, tmp_path):
    X, labels = questions
    sizes = [float(len(x)) for x in X]
    for estimator, y in (
        (SVR(kernel="norm(sst)"), sizes),
        (GPRegressor(kernel="1*norm(sst)", max_iterations=2), sizes),
        (OneClassSVM(kernel="norm(sst)"), None),
        (DagPerceptron(kernel="sst(lambda=0.4)", average=True), labels),
    ):
        estimator.fit(X, y)
        found = estimator.explain(X[0], top=5)
        assert isinstance(found, Explanation) and len(found.up) + len(found.down) > 0
        estimator.save(tmp_path / "model")
        again = load(tmp_path / "model").explain(X[0], top=5)
        assert again.score == found.score and again.table() == found.table()
        copy = pickle.loads(pickle.dumps(estimator.model_))
        assert copy.explain(X[0], top=5).table() == found.table()


def test_labels_of_any_type(questions):
    X, labels = questions
    number = SVC(kernel="norm(sst)", C=10).fit(X, [10 if label == "HUM" else 9 for label in labels])
    name = SVC(kernel="norm(sst)", C=10).fit(X, labels)
    assert number.explain(X[0], label=10).score == pytest.approx(name.explain(X[0], label="HUM").score, abs=0.01)
    assert number.explain(X[0], label=np.int64(9)).label == "9"


def test_one_against_one():
    X = ["(S (A a))", "(S (A b))", "(S (B c))", "(S (B d))", "(S (C e))", "(S (C f))"]
    pairs = SVC(kernel="norm(sst)", C=10, multiclass="ovo").fit(X, list("xxyyzz"))
    found = pairs.explain("(S (B c))")
    assert [decision.label for decision in found.decisions] == ["y against x", "y against z"]


def test_kernels_without_features(questions):
    """Support examples stand for them."""
    X, y = questions
    model = SVC(kernel="norm(ptk)", C=10).fit(X, y)
    found = model.explain(X[0], top=2)
    assert {feature.kind for feature in found.up} == {"example"} and found.tree is None
    with pytest.raises(ValueError, match="ptk"):
        model.explain()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"top": 0}, "top is 0; allowed is a whole number >= 1"),
        ({"label": "ENTY"}, "label is 'ENTY'; the classes are 'HUM', 'LOC'"),
        ({"sign": "up"}, "sign is 'up'; allowed are 'both', 'for', 'against'"),
        ({"x": ["(A a)", "(B b)"]}, r"explain takes one example; of several: \[model.explain\(x\) for x in X\]"),
        ({"x": {"tree": "(A a"}}, "x.*the string ends inside a tree"),
        ({"x": {"tree": "(A a)"}}, "there is no column 'words'"),
    ],
)
def test_bad_calls(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.explain(**arguments)


def test_labels_of_models_without_classes(questions):
    model = SVR(kernel="norm(sst)").fit(questions[0], range(len(questions[0])))
    with pytest.raises(ValueError, match="label is 'x', but the model has no classes"):
        model.explain(questions[0][0], label="x")


# --------------------------------------------------------------------- reports


def test_reports_as_on_the_command_line(model, rows, tool, tmp_path):
    X, y = rows
    model.save(tmp_path / "model")
    espalier.write(X, tmp_path / "data.jsonl", y=y)
    tool("report", "-q", tmp_path / "model", tmp_path / "data.jsonl", "--title", "Who", "-o", tmp_path / "tool.html")
    model.report(tmp_path / "data.jsonl", None, tmp_path / "file.html", title="Who")
    assert (tmp_path / "file.html").read_bytes() == (tmp_path / "tool.html").read_bytes()
    model.report(X, y, tmp_path / "python.html", title="Who")
    ours = (tmp_path / "python.html").read_text()
    assert "Who" in ours
    data = espalier.read(tmp_path / "data.jsonl")
    model.report(data, None, tmp_path / "again.html", title="Who")
    assert (tmp_path / "again.html").read_text() == ours
    model.report(X, None, tmp_path / "bare.html")
    model.report(None, None, tmp_path / "model.html")
    assert (tmp_path / "model.html").stat().st_size < (tmp_path / "bare.html").stat().st_size < len(ours)


def test_bad_reports(model, rows, tmp_path):
    X, y = rows
    with pytest.raises(ValueError, match="examples is 0; allowed is a whole number >= 1"):
        model.report(X, y, tmp_path / "page.html", examples=0)
    with pytest.raises(FileNotFoundError):
        model.report(X, y, tmp_path / "missing" / "page.html")
    with pytest.raises(ValueError, match="no column 'words'"):
        model.report(["(A a)", "(B b)"], None, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------- files


def test_files_are_read_again(rows, tmp_path):
    X, y = rows
    espalier.write(X, tmp_path / "data.jsonl", y=y)
    data = espalier.read(tmp_path / "data.jsonl")
    assert data.target.tolist() == y and data[3] == X[3]
    espalier.write(data, tmp_path / "again.klp")
    again = espalier.read(tmp_path / "again.klp")
    assert again.target.tolist() == y and again.column("tree") == data.column("tree")
    espalier.write(["(A a)", ("B", "b")], tmp_path / "trees.penn", format="penn")
    assert (tmp_path / "trees.penn").read_text() == "(A a)\n(B b)\n"
    espalier.write([[1, 2.5], [0, 3]], tmp_path / "data.jsonl", y=[1, -0.5])
    assert espalier.read(tmp_path / "data.jsonl").target.tolist() == [1, -0.5]


def test_files_that_cannot_be_written(rows, tmp_path):
    with pytest.raises(ValueError, match="the format is 'xml'; there are auto, jsonl"):
        espalier.write(rows[0], tmp_path / "data", format="xml")
    with pytest.raises(ValueError, match=r"y\[1\] is None"):
        espalier.write(["(A a)", "(B b)"], tmp_path / "data.jsonl", y=["x", None])
    with pytest.raises(ValueError, match="data has 2 examples, but there are 1 targets"):
        espalier.write(["(A a)", "(B b)"], tmp_path / "data.jsonl", y=["x"])
    with pytest.raises(FileNotFoundError):
        espalier.write(["(A a)"], tmp_path / "missing" / "data.jsonl")
    assert not list(tmp_path.iterdir())
