"""The native estimators, as scikit-learn's users know theirs."""

from __future__ import annotations

import copy
import errno
import pickle
import random
import warnings
from typing import Any

import numpy as np
import pytest
from conftest import random_tree
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from espalier import (
    SVC,
    SVR,
    DagPerceptron,
    Folds,
    GramTransformer,
    Kernel,
    NystroemFeatures,
    OneClassSVM,
    PatternFeatures,
    PatternMiner,
    load,
)

EVERYTHING = [SVC, SVR, DagPerceptron, GramTransformer, NystroemFeatures, PatternFeatures, PatternMiner]
CLASSIFIERS = [SVC, DagPerceptron]
TREES = ["(S (A a) (B b))", "(S (A a) (B c))", "(S (C c) (D d))", "(S (C c) (D e))", "(S (E e))", "(S (E f))"]


def fitted(kind, questions):
    X, y = questions
    return kind().fit(X, np.arange(len(X)) / 10 if kind is SVR else y)


@pytest.mark.parametrize("kind", EVERYTHING)
def test_parameters(kind):
    estimator = kind()
    params = estimator.get_params()
    assert all(estimator.set_params(**{name: value}).get_params()[name] is value for name, value in params.items())
    assert set(clone(estimator).get_params()) == set(params)
    with pytest.raises(ValueError, match="Invalid parameter"):
        estimator.set_params(nonsense=1)
    assert repr(estimator).startswith(kind.__name__)
    with pytest.raises(TypeError):
        kind("norm(sst)")  # keyword only


@pytest.mark.parametrize("kind", EVERYTHING)
def test_fitting_keeps_the_parameters_and_can_be_repeated(kind, questions):
    X, y = questions
    target = np.arange(len(X)) / 10 if kind is SVR else y
    estimator = kind()
    before = dict(vars(estimator))
    assert estimator.fit(X, target) is estimator
    assert {name: vars(estimator)[name] for name in before} == before
    method = "predict" if hasattr(kind, "predict") else "transform"
    if kind is not PatternMiner:
        first, again = (np.asarray(_dense(getattr(estimator.fit(X, target), method)(X))) for _ in range(2))
        assert (first == again).all()
        for other in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
            assert (np.asarray(_dense(getattr(other, method)(X))) == first).all()


def _dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


@pytest.mark.parametrize("kind", [SVC, SVR, DagPerceptron, GramTransformer, NystroemFeatures, PatternFeatures])
def test_unfitted_ones_say_so(kind):
    method = "predict" if hasattr(kind, "predict") else "transform"
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(kind(), method)(TREES)
    if hasattr(kind, "save"):
        with pytest.raises(NotFittedError):
            kind().save("never")


def test_kinds():
    assert is_classifier(SVC()) and is_classifier(DagPerceptron()) and is_regressor(SVR())


# -------------------------------------------------------------------- classes


def test_large_numbers_are_different_classes():
    y = [2**60, 2**60, 2**60 + 1, 2**60 + 1, 0, 0]
    assert SVC(C=100).fit(TREES, y).predict(TREES).tolist() == y


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    "names",
    [
        ["x", "y"],
        [0, 1],
        [1, -1],
        [True, False],
        [2.0, 1.0],
        ["10", "9"],
        ["é", "z"],
        ["a b", "a,b"],
        ["b", "a", "c"],
        [10, 9, 2],
        ["10", "9", "2"],
    ],
)
def test_labels_of_any_kind_come_back(kind, names):
    y = np.array([names[i // 2 % len(names)] for i in range(len(TREES))])
    model = kind(kernel="norm(sst)").fit(TREES, y)
    assert model.classes_.tolist() == sorted(names)
    assert model.predict(TREES).dtype == y.dtype
    if kind is SVC:
        assert model.set_params(C=100.0).fit(TREES, y).predict(TREES).tolist() == y.tolist()
    scores = model.decision_function(TREES)
    if len(names) == 2:
        assert scores.shape == (6,)
        assert (model.predict(TREES) == model.classes_[(scores > 0).astype(int)]).all()
    else:
        assert scores.shape == (6, 3)
        assert (model.predict(TREES) == model.classes_[scores.argmax(axis=1)]).all()


@pytest.mark.parametrize("names", [["x", "y"], ["10", "9"], ["10", "9", "2"]])
def test_probabilities(names, questions):
    X = questions[0]
    y = np.array([names[(("who" in x) + ("was" in x)) % len(names)] for x in X])
    assert not hasattr(SVC(), "predict_proba")
    model = SVC(probability=True, C=10).fit(X, y)
    chances = model.predict_proba(X)
    assert chances.shape == (len(X), len(names)) and np.allclose(chances.sum(axis=1), 1)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(X)).mean() > 0.95
    assert np.allclose(np.exp(model.predict_log_proba(X)), chances)
    plain = SVC().fit(X, y).set_params(probability=True)
    with pytest.raises(ValueError, match="trained without probabilities"):
        plain.predict_proba(X)


def test_class_weights(questions):
    X, y = questions
    counts = {label: y.count(label) for label in set(y)}
    weights = {label: len(y) / 2 / count for label, count in counts.items()}
    balanced = SVC(class_weight="balanced", C=0.01).fit(X, y).decision_function(X)
    given = SVC(class_weight=weights, C=0.01).fit(X, y).decision_function(X)
    np.testing.assert_allclose(balanced, given, rtol=1e-9)
    assert not np.allclose(balanced, SVC(C=0.01).fit(X, y).decision_function(X))
    with pytest.raises(ValueError, match="class_weight must be"):
        SVC(class_weight=3).fit(X, y)
    with pytest.raises(ValueError, match="commas"):
        SVC(class_weight={"a,b": 1}).fit(X, y)


BAD_TARGETS: dict[str, tuple[Any, str]] = {
    "none": (None, "requires y to be passed, but the target y is None"),
    "None inside": (["x", None, "x", "y", "y", "y"], r"y\[1\] is None"),
    "NaN": ([1.0, 2.0, float("nan"), 1.0, 2.0, 1.0], r"y\[2\] is NaN"),
    "too few": (["x", "y"], "X has 6 examples, but there are 2 targets"),
    "two dimensions": (np.zeros((6, 2)), "y has 2 dimensions"),
    "one class": (["x"] * 6, "two classes at least"),
}


@pytest.mark.parametrize("what", BAD_TARGETS)
@pytest.mark.parametrize("kind", [SVC, SVR, DagPerceptron])
def test_bad_targets_are_told(kind, what):
    y, message = BAD_TARGETS[what]
    if kind is SVR and what in ("one class", "too few", "None inside"):
        y = [0.0, None] * 3 if what == "None inside" else [1.0] * 2
        message = r"y\[1\] is None" if what == "None inside" else "but there are 2 targets"
    with pytest.raises(ValueError, match=message):
        kind().fit(TREES, y)


def test_bad_classes_and_numbers_are_told():
    with pytest.raises(ValueError, match="mixes classes"):
        SVC().fit(TREES, ["x", 1, "x", 1, "x", 1])
    with pytest.raises(ValueError, match="Unknown label type|continuous"):
        SVC().fit(TREES, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    with pytest.raises(ValueError, match="no numbers"):
        SVR().fit(TREES, list("abcdef"))
    with pytest.raises(ValueError, match=r"y\[5\] is inf"):
        SVR().fit(TREES, [1, 2, 3, 4, 5, float("inf")])
    with pytest.raises(ValueError, match="is empty"):
        SVC().fit(TREES, ["", "x"] * 3)
    with pytest.raises(ValueError, match="NUL"):
        SVC().fit(TREES, np.array(["a\0b", "x"] * 3, dtype=object))


@pytest.mark.parametrize(
    "params, message",
    [
        ({"C": -1}, "C is '-1'; allowed is a number > 0"),
        ({"C": "x"}, "C is 'x'"),
        ({"C": float("nan")}, "C is 'nan'"),
        ({"multiclass": "both"}, "multiclass is 'both'; allowed is ovr or ovo"),
        ({"kernel": "nonsense"}, "nonsense"),
        ({"kernel": 3}, "kernel is a int"),
        ({"kernel": "rbf"}, "rbf: the data have no column that it takes"),
        ({"probability": True, "multiclass": "ovo"}, "probability needs multiclass ovr"),
        ({"class_weight": {"q": 2}}, "q"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings_are_told(params, message):
    with pytest.raises(ValueError, match=message):
        SVC(**params).fit(TREES, [0, 0, 1, 1, 2, 2])


def test_columns_of_a_table(questions):
    X, y = questions
    table = [{"t": x, "n": [float(len(x))]} for x in X]
    model = SVC(kernel="norm(sst(t)) + 0.001*linear(n)").fit(table, y)
    assert model.score(table, y) > 0.8
    with pytest.raises(ValueError, match="there is no column 't'"):
        model.predict([{"u": "(A b)", "n": [1.0]}])
    plain = SVC().fit(X, y)
    assert (plain.predict([{"tree": x, "other": "w"} for x in X]) == plain.predict(X)).all()


# ----------------------------------------------------------------- regression


def test_regression(questions):
    X, _ = questions
    y = np.array([float(x.count("(A")) for x in X])
    model = SVR(kernel="sst(lambda=0.1)", C=10, epsilon=0.05).fit(X[:90], y[:90])
    assert model.score(X[90:], y[90:]) > 0.8
    assert model.predict(X[:1]).shape == (1,)


# --------------------------------------------------------------------- online


def test_partial_fit_is_fit(questions):
    X, y = questions
    whole = DagPerceptron(kernel="sst(lambda=0.4)").fit(X, y)
    parts = DagPerceptron(kernel="sst(lambda=0.4)")
    for at in range(0, len(X), 7):
        parts.partial_fit(X[at : at + 7], y[at : at + 7])
        parts = pickle.loads(pickle.dumps(parts)) if at % 2 and len(parts.classes_) > 1 else parts
    assert (parts.decision_function(X) == whole.decision_function(X)).all()


def test_partial_fit_goes_on_after_fit(questions):
    X, y = questions
    model = DagPerceptron(kernel="sst", epochs=3).fit(X[:60], y[:60])
    before = model.decision_function(X)
    model.partial_fit(X[60:], y[60:])
    assert not (model.decision_function(X) == before).all()
    assert "steps" in model.model_.summary and int(model.model_.summary["steps"]) == 3 * 60 + 60
    # From the beginning.
    assert (model.fit(X[:60], y[:60]).decision_function(X) == before).all()


def test_classes_may_come_later():
    model = DagPerceptron(kernel="sst").partial_fit(TREES[:2], ["x", "x"])
    with pytest.raises(ValueError, match="class"):
        model.predict(TREES)
    model.partial_fit(TREES[2:4], ["z", "z"])
    assert model.classes_.tolist() == ["x", "z"] and model.decision_function(TREES).shape == (6,)
    model.partial_fit(TREES[4:], ["a", "a"])
    assert model.classes_.tolist() == ["a", "x", "z"] and model.decision_function(TREES).shape == (6, 3)
    assert set(model.predict(TREES)) <= set("axz")
    with pytest.raises(ValueError, match="'q', which is not among classes"):
        model.partial_fit(TREES[:1], ["q"], classes=["a", "x", "z"])
    with pytest.raises(ValueError, match="mixes classes"):
        model.partial_fit(TREES[:1], [3])


def test_a_bad_batch_changes_nothing(questions):
    X, y = questions
    model = DagPerceptron(kernel="sst").partial_fit(X, y)
    before = model.decision_function(X)
    for batch in (["(A"], [None]):
        with pytest.raises(ValueError):
            model.partial_fit(batch, ["HUM"])
    assert (model.decision_function(X) == before).all()


@pytest.mark.parametrize("params", [{"average": True}, {"vote": True}, {"margin": 0.5}, {"shuffle": True, "epochs": 2}])
def test_ways_of_the_perceptron(params, questions):
    X, y = questions
    assert DagPerceptron(kernel="norm(sst)", **params).fit(X, y).score(X, y) > 0.8
    with pytest.raises(ValueError, match="exclude each other"):
        DagPerceptron(average=True, vote=True).fit(X, y)


# ---------------------------------------------------------- with scikit-learn


def test_pipelines_and_searches(questions):
    X, y = questions
    upper = FunctionTransformer(lambda trees: [tree.upper() for tree in trees])
    search = GridSearchCV(
        make_pipeline(upper, SVC()), {"svc__C": [0.1, 10], "svc__kernel": ["norm(sst)", "norm(ptk)"]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.8
    search = GridSearchCV(SVC(kernel=Kernel("norm(sst)")), {"kernel__lambda": [0.1, 0.4]}, cv=3).fit(X, y)
    assert set(search.best_params_) == {"kernel__lambda"}


def test_jobs_do_not_matter(questions):
    X, y = questions
    one, two = (cross_val_score(SVC(threads=1), X, y, cv=4, n_jobs=n) for n in (1, 2))
    assert (one == two).all()


def test_learning_curve_by_partial_fit(questions):
    X, y = questions
    learner = DagPerceptron(kernel="norm(sst)")
    _, _, scores = learning_curve(learner, X, y, cv=3, train_sizes=[0.5, 1.0], exploit_incremental_learning=True)
    assert scores.shape == (2, 3) and scores[-1].mean() > 0.7


def test_folds(questions):
    X, y = questions
    seen = np.concatenate([test for _, test in Folds(4, seed=3).split(X, y)])
    assert sorted(seen) == list(range(len(X)))
    for train, test in Folds(4, seed=3).split(X, y):
        assert not set(train) & set(test) and len(train) + len(test) == len(X)
        assert abs(np.mean(np.array(y)[test] == "HUM") - np.mean(np.array(y) == "HUM")) < 0.05
    assert (Folds(4, seed=3).numbers(y) != Folds(4, seed=4).numbers(y)).any()
    assert cross_val_predict(SVC(), X, y, cv=Folds(3)).shape == (len(X),)
    assert len(set(Folds(3).numbers(np.linspace(0, 1, 10)))) == 3
    with pytest.raises(ValueError, match="1 folds; allowed are 2 to"):
        Folds(1).numbers(y)


def test_saved_and_loaded(questions, tmp_path):
    for kind in (SVC, SVR, DagPerceptron):
        model = fitted(kind, questions)
        model.save(tmp_path / "model")
        other = load(tmp_path / "model")
        assert type(other) is kind
        assert (other.predict(questions[0]) == model.predict(questions[0])).all()
    model = SVC(C=3.5, class_weight={"HUM": 2.0, "LOC": 0.5}, multiclass="ovo", max_iterations=99, no_shrinking=True)
    model.fit(*questions).save(tmp_path / "model")
    params = load(tmp_path / "model").get_params()
    assert {name for name, value in model.get_params().items() if params[name] != value} == {"kernel"}
    SVC().fit(TREES, [1, 1, 20, 20, 3, 3]).save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == [1, 3, 20]
    perceptron = DagPerceptron(kernel="sst").fit(*questions)
    perceptron.save(tmp_path / "model")
    more = [X[:10] for X in questions]
    loaded = load(tmp_path / "model").partial_fit(*more)
    assert (
        loaded.decision_function(questions[0]) == perceptron.partial_fit(*more).decision_function(questions[0])
    ).all()


def test_bad_model_files_are_told(tmp_path, questions):
    path = tmp_path / "model"
    with pytest.raises(FileNotFoundError, match="model") as told:
        load(path)
    assert told.value.errno == errno.ENOENT
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    path.write_text("no model at all")
    with pytest.raises(ValueError, match="model"):
        load(path)
    SVC().fit(*questions).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with pytest.raises(ValueError):
        load(path)
    path.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with pytest.raises(ValueError):
        load(path)
    with pytest.raises(OSError):
        SVC().fit(*questions).save(tmp_path / "no" / "such" / "folder")


def test_what_models_tell(questions):
    model = SVC(C=2).fit(*questions).model_
    assert (model.learner, model.classes) == ("svm", ["HUM", "LOC"])
    assert model.settings["C"] == "2" and "sst(tree" in model.kernel and model.summary["end"] == "converged"
    assert str(model).startswith("learner\tsvm")
    assert "<table" in model._repr_html_()


def test_what_was_learned_before_an_interrupt_can_be_kept():
    draw = random.Random(3)
    X = [random_tree(draw, 2) for _ in range(4000)]  # many are equal and of both classes, which takes long
    y = [draw.randrange(2) for _ in X]

    def stop(stage, fraction):
        if stage == "training":
            raise KeyboardInterrupt

    settings: dict[str, Any] = {"kernel": "norm(sst)", "C": 1e7, "tolerance": 1e-12, "threads": 1, "progress": stop}
    with pytest.raises(KeyboardInterrupt):
        SVC(**settings).fit(X, y)
    with pytest.warns(UserWarning, match="interrupted: the model is what was learned so far"):
        model = SVC(keep_partial=True, **settings).fit(X, y)
    model.progress = None
    assert len(model.predict(X)) == len(X)


@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_the_solver_can_be_chosen(kind, questions):
    X, y = questions[0], [int(label == "HUM") for label in questions[1]]
    scores = {
        solver: kind(solver=solver, tolerance=1e-6).fit(X, y).model_.predict(X) for solver in ("rows", "auto", "folded")
    }
    np.testing.assert_allclose(scores["auto"], scores["rows"], atol=1e-3)
    np.testing.assert_allclose(scores["folded"], scores["rows"], atol=1e-3)
    with pytest.raises(ValueError, match="solver is 'fast'; allowed is auto, rows or folded"):
        kind(solver="fast").fit(X, y)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_the_folded_solver_agrees_with_rows(multiclass, questions):
    X, y = questions[0], [label if i % 3 else "NUM" for i, label in enumerate(questions[1])]
    rows, folded = (
        SVC(solver=solver, multiclass=multiclass, C=5, tolerance=1e-6).fit(X, y) for solver in ("rows", "folded")
    )
    np.testing.assert_allclose(folded.decision_function(X), rows.decision_function(X), atol=1e-3)
    assert (folded.predict(X) == rows.predict(X)).all()
    summary = folded.model_.summary
    assert "solver" not in rows.model_.summary and summary["solver"] == "folded"
    primal, dual = (float(summary[f"{kind} objective"]) for kind in ("primal", "dual"))
    assert dual <= primal <= dual * (1 + 1e-5)
    assert float(summary["relative gap"]) <= 1e-6 and float(summary["worst violation"]) <= 1e-6


@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_threads_do_not_matter_to_the_folded_solver(kind, questions):
    X, y = questions[0], [int(label == "HUM") for label in questions[1]]
    models = [kind(solver="folded", threads=n).fit(X, y) for n in (1, 2, 3)]
    assert len({model.model_.to_bytes() for model in models}) == 1
    one, *others = (model.model_.predict(X) for model in models)
    for other in others:
        np.testing.assert_array_equal(one, other)


def test_the_folded_solver_names_the_term_that_does_not_fold():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"the sums of rbf\(.*\) do not fold"):
        SVC(kernel="linear + rbf", solver="folded").fit(X, y)
    with pytest.raises(ValueError, match="inducing examples take the solver rows"):
        SVC(kernel="linear", solver="folded", inducing=2).fit(X, y)


def test_inducing_examples_support_the_model():
    draw = random.Random(4)
    X = [f"(S {random_tree(draw)} (K{i % 2} x))" for i in range(80)]
    for model in (SVC(inducing=15).fit(X, [i % 2 for i in range(80)]), SVR(inducing=15).fit(X, range(80))):
        assert model.model_.summary["support examples"] == "15"


# ---------------------------------------------------------- scikit-learn's ways


def test_what_has_not_converged_warns(questions):
    X, y = questions
    with pytest.warns(ConvergenceWarning, match="limit of iterations, 2, before .*; raise max_iterations"):
        model = SVC(max_iterations=2, solver="rows").fit(X, y)
    assert model.n_iter_ == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(solver="rows").fit(X, y)
    assert model.n_iter_ == int(model.model_.summary["iterations"]) > 2
    assert not hasattr(SVC(), "n_iter_")


@pytest.mark.parametrize(
    "theirs, ours",
    [("n_jobs", "threads"), ("random_state", "seed"), ("max_iter", "max_iterations"), ("tol", "tolerance")],
)
def test_names_of_scikit_learn_get_a_hint(theirs, ours):
    with pytest.raises(TypeError, match=f"SVC has no parameter '{theirs}'; it is called '{ours}' here"):
        SVC(**{theirs: 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_iter'"):
        DagPerceptron(max_iter=3)  # type: ignore[call-arg]
