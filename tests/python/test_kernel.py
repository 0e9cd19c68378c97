"""Kernels as functions, with parameters by name, and inside scikit-learn."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import sklearn.svm
from conftest import random_tree
from reference import parse, sst
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from espalier import GramTransformer, Kernel, _espalier

TREES = [random_tree(random.Random(seed)) for seed in range(20)]


def test_values_are_those_of_the_definition():
    expected = [[sst(parse(s), parse(t), 0.3) for t in TREES] for s in TREES]
    kernel = Kernel("sst(lambda=0.3)")
    gram = kernel(TREES)
    assert gram.dtype == np.float64 and gram.flags.c_contiguous
    np.testing.assert_allclose(gram, expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(TREES[:3], TREES), np.array(expected)[:3], rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(TREES), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(kernel(TREES[0], TREES[1]), expected[0][1], rtol=1e-12)


def test_threads_do_not_matter():
    one, many = (Kernel("norm(sst)", threads=n)(TREES * 20) for n in (1, 4))
    assert (one == many).all() and (one == one.T).all()


def test_parameters_have_names():
    kernel = Kernel("norm(sst(tree, lambda=0.25)) + 0.3*poly(x, degree=3)^2")
    params = kernel.get_params()
    assert [params[name] for name in ("lambda", "weight", "degree", "power")] == [0.25, 0.3, 3, 2]
    kernel.set_params(**{"lambda": 0.5, "weight": np.float64(2), "degree": 4})
    assert kernel.text.startswith("norm(sst(tree, lambda=0.5,") and "2*poly(x, degree=4" in kernel.text
    assert kernel.columns == ["tree", "x"]


def test_what_several_kernels_have_is_told_apart():
    kernel = Kernel("sst(a) + 2*sst(b) + 3*ptk(c)")
    assert {"sst(a).lambda", "sst(b).lambda", "ptk(c).lambda", "weight.1", "weight.2", "mu"} < set(kernel.get_params())
    kernel.set_params(**{"lambda": 0.1, "sst(b).lambda": 0.2, "weight.2": 9})
    params = kernel.get_params()
    assert [params[f"{name}.lambda"] for name in ("sst(a)", "sst(b)", "ptk(c)")] == [0.1, 0.2, 0.1]
    assert (params["weight.1"], params["weight.2"]) == (2, 9)


@pytest.mark.parametrize(
    "expression",
    [
        "1*norm(sst(tree, bow=1)) + 1*rbf(x)",
        "2*(3*sst(a) + 4*ptk(a))^2 + 5*norm(6*seq(b))*norm(poly(x))",
        "sst + 2*sst(alpha=0) + 3*(sst + norm(2*ptk)^3)",
        "sasst(t, lambda.NP=0.3) + 0.5*sasst(t, lambda.NP=0.1, alpha.S=1) + rbf(x, ard=1, gamma.p=2)",
        'sasst("my trees", lambda."a, b=c)"=0.2) + norm(norm(st(t, bow=0.1)))',
        "7*norm(gtk(grammar={NP -> DT [JJ] NN; = NN NNS})) + gtk",
    ],
)
def test_names_are_those_of_the_library(expression):
    kernel = Kernel(expression)
    params = kernel.get_params()
    learned = {name.decode(): value for name, value, _, _ in _espalier.hyperparameters(kernel._handle)}
    assert learned
    assert {name: params[name] for name in learned} == learned


def test_labels_may_have_parameters():
    kernel = Kernel('sasst("my trees", lambda.NP=0.3, lambda."a, b=c)"=0.2)')
    assert kernel.columns == ["my trees"]
    assert kernel.get_params()["lambda.NP"] == 0.3
    assert kernel.get_params()["lambda.a, b=c)"] == 0.2
    kernel.set_params(**{"lambda.a, b=c)": 0.7})
    assert 'lambda."a, b=c)"=0.7' in kernel.text
    kernel.set_params(**{'lambda."a, b=c)"': 0.8})
    assert 'lambda."a, b=c)"=0.8' in kernel.text


def test_grammars_are_values(tmp_path):
    rules = tmp_path / "np.rules"
    rules.write_text("NP -> DT [JJ] NN\n")
    kernel = Kernel(f"gtk(grammar={rules})")
    assert kernel.get_params()["grammar"] == "{NP -> DT [JJ] NN}"
    kept = pickle.dumps(kernel)
    rules.unlink()
    assert pickle.loads(kept).text == kernel.text


def test_rules_that_match_nothing_are_warned_of():
    with pytest.warns(UserWarning, match="match"):
        Kernel("gtk(grammar={X -> [Y] Z})")(TREES)


@pytest.mark.parametrize(
    "expression, message",
    [
        ("sts", "did you mean 'st'|unknown kernel 'sts'"),
        ("sst(lambda=-1)", "lambda"),
        ("sst(", "not the end"),
        ("sst(a", "never closed"),
        ("", "."),
        ("sst\0", "NUL"),
        ("\ud800", "."),
        (3, "a kernel expression is a string, not a int"),
    ],
)
def test_bad_expressions_are_told(expression, message):
    with pytest.raises(ValueError, match=message):
        Kernel(expression)


def test_bad_parameters_are_told():
    kernel = Kernel("sst")
    with pytest.raises(ValueError, match="has no parameter 'gamma'; it has lambda, alpha"):
        kernel.set_params(gamma=1)
    with pytest.raises(ValueError, match="lambda"):
        kernel.set_params(**{"lambda": -1})
    with pytest.raises(ValueError, match="is no value of a kernel"):
        kernel.set_params(**{"lambda": None})
    assert kernel.text == Kernel("sst").text
    with pytest.raises(ValueError, match="threads is 'x'"):
        Kernel("sst", threads="x")(TREES)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads is -2"):
        Kernel("sst", threads=-2)(TREES)
    with pytest.raises(ValueError, match="progress is 3"):
        Kernel("sst", progress=3)(TREES)  # type: ignore[arg-type]
    with pytest.raises(MemoryError, match="the limit|memory"):
        Kernel("sst", memory=100)(TREES)
    with pytest.raises(ValueError, match="too large for"):
        Kernel("sst(lambda=1e300)")(TREES)


def test_kernels_are_cloned_copied_and_pickled():
    kernel = Kernel("norm(sst(lambda=0.3))", threads=1).set_params(**{"lambda": 0.2})
    for other in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert other is not kernel
        assert other.get_params() == kernel.get_params()
        assert (other(TREES) == kernel(TREES)).all()
    assert repr(Kernel("norm(sst)")) == "norm(sst)"


def test_scikit_learn_takes_it_for_a_function(questions):
    X, y = questions
    svc = sklearn.svm.SVC(kernel=Kernel("norm(sst)"), C=10).fit(X[:80], y[:80])
    assert svc.score(X[80:], y[80:]) > 0.85
    X = np.random.default_rng(1).normal(size=(5, 3))
    np.testing.assert_allclose(pairwise_kernels(X, metric=Kernel("rbf")), Kernel("rbf")(X))
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 6):  # before, it took numbers only
        np.testing.assert_allclose(pairwise_kernels(np.array(TREES), metric=Kernel("sst")), Kernel("sst")(TREES))


def test_grids_reach_into_the_kernel(questions):
    X, y = questions
    search = GridSearchCV(sklearn.svm.SVC(kernel=Kernel("norm(sst)")), {"kernel__lambda": [0.01, 0.4]}, cv=3)
    search.fit(X, y)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        fixed = Kernel(f"norm(sst(lambda={params['kernel__lambda']}))")
        assert cross_val_score(sklearn.svm.SVC(kernel=fixed), X, y, cv=3).mean() == score


def test_gram_transformer_in_a_pipeline(questions):
    X, y = questions
    pipeline = make_pipeline(GramTransformer(kernel=Kernel("norm(sst)")), sklearn.svm.SVC(kernel="precomputed", C=10))
    direct = cross_val_score(sklearn.svm.SVC(kernel=Kernel("norm(sst)"), C=10), X, y, cv=4)
    assert (cross_val_score(pipeline, X, y, cv=4) == direct).all()
    # The matrix of all examples, of which cross-validation takes rows and columns.
    gram = Kernel("norm(sst)")(X)
    pipeline = make_pipeline(GramTransformer(kernel="precomputed"), sklearn.svm.SVC(kernel="precomputed", C=10))
    assert (cross_val_score(pipeline, gram, y, cv=4) == direct).all()
    search = GridSearchCV(pipeline, {"svc__C": [1, 10]}, cv=4).fit(gram, y)
    assert search.cv_results_["mean_test_score"][1] == direct.mean()


def test_gram_transformer_keeps_its_examples():
    transformer = GramTransformer(kernel="norm(sst)")
    with pytest.raises(NotFittedError):
        transformer.transform(TREES)
    gram = transformer.fit_transform(TREES)
    assert (gram == Kernel("norm(sst)")(TREES)).all()
    for kept in (transformer, pickle.loads(pickle.dumps(transformer))):
        assert (kept.transform(TREES[:2]) == Kernel("norm(sst)")(TREES[:2], TREES)).all()
    assert len(transformer.get_feature_names_out()) == len(TREES)
    with pytest.raises(ValueError, match="as many rows as columns"):
        GramTransformer(kernel="precomputed").fit(gram[:2])
    with pytest.raises(ValueError, match="a row has a value for each of 20 examples"):
        GramTransformer(kernel="precomputed").fit(gram).transform(gram[:, :3])
    with pytest.raises(ValueError, match="kernel is a int"):
        GramTransformer(kernel=3).fit(TREES)  # type: ignore[arg-type]


# -------------------------------------------------------------------- algebra


def test_kernels_add_and_multiply():
    X = ["(S (A a))", "(S (A b))", "(T (A a) (B b))"]
    a, b = Kernel("norm(sst(lambda=0.3))", threads=1), Kernel("norm(ptk) + 1*sst")
    for made, expected in (
        (a + 0.5 * b, a(X) + 0.5 * b(X)),
        (a * b, a(X) * b(X)),
        (2 * (a + b) * a, 2 * (a(X) + b(X)) * a(X)),
        (a**3, a(X) ** 3),
        (np.float32(0.5) * b, 0.5 * b(X)),
        (b * 2, 2 * b(X)),
    ):
        assert made(X) == pytest.approx(expected) and isinstance(made, Kernel)
    assert (a + b).threads == 1 and a.expression == "norm(sst(lambda=0.3))"
    for wrong in (lambda: a + 1, lambda: a * "x", lambda: a**0.5, lambda: a * True):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="kernel expression"):
        a * -1


def test_equal_kernels():
    assert Kernel("sst") == Kernel("sst(lambda=0.40)") != Kernel("sst(lambda=0.5)")
    assert Kernel("sst") != "sst" and hash(Kernel("sst")) == hash(Kernel("sst(alpha=1)"))


def test_parameters_with_ranges():
    rows = {row["name"]: row for row in Kernel("2*norm(sst(lambda=0.3))^2 + ptk").parameters()}
    assert rows["sst().lambda"]["value"] == 0.3 and rows["sst().lambda"]["default"] == "0.4"
    assert rows["mu"]["range"] == "a number > 0" and "height" in rows["mu"]["help"]
    assert rows["weight"]["value"] == 2 and rows["power"]["value"] == 2 and rows["weight"]["range"] == ""
    assert rows.keys() == Kernel("2*norm(sst(lambda=0.3))^2 + ptk").get_params().keys() - {
        "expression", "threads", "memory", "progress",
    }  # fmt: skip
