"""Examples of any kind go straight into kernels and estimators, since the kernel says what it takes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from espalier import SVC, Kernel, Tree, TreeTransformer, tree

SENTENCE = "\n".join(
    "\t".join(word)
    for word in [
        ("1", "She", "she", "PRON", "PRP", "_", "2", "nsubj", "_", "_"),
        ("2", "sleeps", "sleep", "VERB", "VBZ", "_", "0", "root", "_", "_"),
    ]
)

TREES: dict[str, list] = {
    "xml": ["<a><b><c/></b></a>", "<a><b><d/></b></a>"],
    "json": ['{"a": {"b": 1}}', '{"a": {"b": 2}}'],
    "conllu": [SENTENCE, SENTENCE.replace("She", "He")],
    "documents": [{"a": {"b": 1}}, {"a": {"b": 2}, "c": "x"}],
    "numbers": [{"a": 1, "b": 2}, {"a": 1}],
    "tuples": [("S", "a", "b"), ("S", "a")],
    "lists": [["S", "a", "b"], ["S", ["A", "a"]]],
    "mixed": ["(S a b)", ("S", "a"), "<S><a/></S>", {"label": "S", "children": ["a"]}],
}


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("kernel", ["norm(sst)", "norm(ptk(parse))", "norm(sst) + ptk"])
def test_trees(kind, kernel):
    X, K = TREES[kind], Kernel(kernel)
    options = {"kind": "json"} if kind in ("documents", "numbers") else {}
    texts = [str(tree(x, **options)) for x in X]
    assert (K(X) == K(texts)).all()
    model = SVC(kernel=kernel).fit(X, range(len(X)))
    assert (model.decision_function(X) == model.decision_function(texts)).all()
    stream = SVC(kernel=kernel).fit(iter(zip(X, range(len(X)))))
    assert stream.decision_function(X) == pytest.approx(model.decision_function(X))


def test_numbers_of_tokens():
    K = Kernel("norm(seq(n=2))")
    expected = K(["3 5 7", "5 7 9"])
    for X in (
        [[3, 5, 7], [5, 7, 9]],
        [(3, 5, 7), (5, 7, 9)],
        np.array([[3, 5, 7], [5, 7, 9]]),
        [["3", 5, "7"], [5, 7, 9]],
    ):
        assert (K(X) == expected).all()
    assert (K([np.array([3, 5, 7]), np.array([5, 7, 9])]) == expected).all()
    # A kernel over vectors takes them as such.
    assert Kernel("linear")([[3, 5, 7], [5, 7, 9]])[0, 1] == 15 + 35 + 63


def test_arrays_of_one_column():
    column = np.array([["(A a)"], ["(A b)"]], dtype=object)
    assert (Kernel("sst")(column) == Kernel("sst")(["(A a)", "(A b)"])).all()


def test_texts_that_start_with_a_bracket():
    K = Kernel("seq(n=1, lambda=1)")
    X = ["(laughs) fine", "so fine", "(laughs)"]
    assert K(X).tolist() == [[2, 1, 1], [1, 2, 0], [1, 0, 1]]
    assert (K([x.split() for x in X]) == K(X)).all()
    rows = [{"t": "(A a)", "w": x} for x in X]
    assert (Kernel("seq(w, n=1, lambda=1)")(rows) == K(X)).all()
    model = SVC(kernel="seq").fit(iter([(X[0], 0), (X[1], 1)]))
    assert model.predict(X[:2]).tolist() == [0, 1]


def test_rows_stay_rows():
    """A dict with a tree in it, or with a column that the kernel names, is no document."""
    rows = [{"parse": "(A a)", "note": "x"}, {"parse": "(A b)", "note": "y"}]
    assert (Kernel("sst")(rows) == Kernel("sst")(["(A a)", "(A b)"])).all()
    documents = [{"doc": {"a": 1}}, {"doc": {"a": 2}}]
    assert (Kernel("sst(doc)")(documents) == Kernel("sst")([row["doc"] for row in documents])).all()


def test_columns_of_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"page": TREES["xml"]})
    assert (Kernel("sst")(frame) == Kernel("sst")(TREES["xml"])).all()


@pytest.mark.parametrize(
    "kernel, X, message",
    [
        ("sst", ["she sleeps"], r"X\[0\]: the string 'she sleeps' is no tree; a tree starts with '\('"),
        ("sst", ["(A a)", "<a>"], r"X\[1\]: the XML text is wrong"),
        ("seq", ["(S (A a))", "(S b)"], r"X\[0\] is a bracket string, but .* are espalier.tree\(x\).leaves\(\)"),
        ("sst", np.array([["(A a)", 1], ["(B b)", 2]], dtype=object), r"takes one column of trees: X\[:, 0\]"),
        ("sst", [("S", "a"), 7.5], r"X\[0\] is a tuple, but X\[1\] is a float"),
    ],
)
def test_what_cannot_be_decided(kernel, X, message):
    with pytest.raises(ValueError, match=message):
        Kernel(kernel)(X)


# ---------------------------------------------------------------- transformer


def test_the_transformer_in_a_grid():
    sources = [f"{name} = {name} + {i}" for i, name in enumerate("abcdef")] + [f"f{i}({i})" for i in range(6)]
    y = [0] * 6 + [1] * 6
    pipeline = Pipeline([("trees", TreeTransformer(kind="ast")), ("svc", SVC(kernel="norm(ptk)"))])
    search = GridSearchCV(pipeline, {"trees__names": ["keep", "abstract"], "trees__fields": [True, False]}, cv=3)
    assert search.fit(sources, y).best_score_ > 0.9
    made = TreeTransformer(kind="ast", names="abstract", fields=False).fit_transform(sources[:1])
    assert made == [tree(sources[0], kind="ast", names="abstract", fields=False)] and isinstance(made[0], Tree)
    assert repr(clone(TreeTransformer(kind="xml", text="words"))) == "TreeTransformer(kind='xml', text='words')"


def test_the_transformer_has_all_policies():
    from espalier._trees import _CONVERSIONS

    options = {name for made in _CONVERSIONS.values() for name in getattr(made, "__kwdefaults__", None) or {}}
    assert options | {"kind"} == set(TreeTransformer().get_params())


def test_the_transformer_names_what_is_wrong():
    with pytest.raises(ValueError, match=r"X\[1\]: the XML text is wrong"):
        TreeTransformer(kind="xml").transform(["<a/>", "<a>"])
    with pytest.raises(TypeError, match="'names' is no option of trees of the kind 'xml'"):
        TreeTransformer(kind="xml", names="keep").transform(["<a/>"])
