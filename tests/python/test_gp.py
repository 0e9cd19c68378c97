"""Gaussian processes: against the command line, against their definitions in NumPy, and in scikit-learn's hands."""

from __future__ import annotations

import json
import pickle
import random

import numpy as np
import pytest
from conftest import random_tree
from reference import parse, sst
from scipy.stats import norm as normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline

import espalier
from espalier import GPClassifier, GPKernel, GPRegressor, Kernel, _espalier, load


@pytest.fixture(scope="module")
def lengths() -> tuple[list[str], list[float]]:
    """Trees, and a number that has to do with them."""
    draw = random.Random(11)
    trees = [random_tree(draw, 3) for _ in range(40)]
    return trees, [10 + 3 * tree.count("S") - tree.count("(A a)") + draw.gauss(0, 0.3) for tree in trees]


def write(path, X, y):
    path.write_text("".join(json.dumps({"y": target, "tree": x}) + "\n" for x, target in zip(X, y)))
    return path


# ------------------------------------------------------------- command line

SETTINGS = {name for learner, _, table in _espalier.learners() if learner == "gp" for name, *_ in table}
REGRESSIONS = {
    "plain": (GPRegressor(kernel="1*norm(sst(lambda=0.4))"), []),
    "settings": (
        GPRegressor(
            kernel="1*norm(sst(lambda=0.4))",
            noise=0.5,
            mean="constant",
            standardise="mean",
            restarts=2,
            fix=["alpha"],
            prior={"lambda": (0.3, 0.5)},
            max_iterations=9,
            tolerance=0.001,
            seed=4,
        ),
        [
            *("--noise", "0.5", "--mean", "constant", "--standardise", "mean", "--restarts", "2", "--fix", "alpha"),
            *("--prior", "lambda=0.3,0.5", "--max-iterations", "9", "--tolerance", "0.001", "--seed", "4"),
        ],
    ),
    "inducing": (GPRegressor(kernel="1*norm(sst(lambda=0.4))", inducing=15), ["--inducing", "15"]),
    "iterative": (
        GPRegressor(kernel="1*norm(sst(lambda=0.4))", solver="iterative", solver_rank=9, probes=3, max_iterations=2),
        ["--solver", "iterative", "--solver-rank", "9", "--probes", "3", "--max-iterations", "2"],
    ),
    "labels": (
        GPRegressor(kernel="sasst(lambda=0.4)", group=[["S", "T"], ["A", "B"]], tie=["alpha.*"]),
        ["--group", "S,T;A,B", "--tie", "alpha.*"],
    ),
}


@pytest.mark.parametrize("case", REGRESSIONS)
def test_regression_as_on_the_command_line(case, tool, lengths, tmp_path):
    X, y = lengths
    estimator, options = REGRESSIONS[case]
    if case == "inducing" and "inducing" not in SETTINGS:
        pytest.skip("the library has no such setting yet")
    data, model = write(tmp_path / "data.jsonl", X, y), tmp_path / "tool.model"
    tool("train", "-q", "-l", "gp", "-k", estimator.kernel, *options, "-o", model, data)
    estimator = clone(estimator).fit(X, y)
    assert estimator.model_.to_bytes() == model.read_bytes()
    for latent in (False, True):
        lines = tool("predict", "-q", *(["--latent"] if latent else []), model, data).splitlines()
        told = np.array([[float(field) for field in line.split("\t")] for line in lines])
        mean, std = load(model).predict(X, return_std=True, latent=latent)
        assert (told[:, 0] == mean).all() and (mean == estimator.predict(X)).all()
        assert np.sqrt(told[:, 1]).tolist() == std.tolist()
    assert np.isfinite(estimator.log_marginal_likelihood_value_)


def test_classes_as_on_the_command_line(tool, questions, tmp_path):
    X, y = questions
    data, model = write(tmp_path / "data.jsonl", X, y), tmp_path / "tool.model"
    kernel = "1*norm(sst(lambda=0.4))"
    tool("train", "-q", "-l", "gp", "--likelihood", "bernoulli", "-k", kernel, "--fix", "alpha", "-o", model, data)
    estimator = GPClassifier(kernel=kernel, fix="alpha").fit(X, y)
    estimator.save(tmp_path / "python.model")
    assert (tmp_path / "python.model").read_bytes() == model.read_bytes()
    loaded = load(model)
    assert isinstance(loaded, GPClassifier) and loaded.fix == "alpha"
    lines = [line.split("\t") for line in tool("predict", "-q", model, data).splitlines()]
    assert [line[0] for line in lines] == loaded.predict(X).tolist()
    assert [float(line[1]) for line in lines] == loaded.decision_function(X).tolist()
    lines = tool("predict", "-q", "--probability", "--all-scores", model, data).splitlines()
    told = [[float(field) for field in line.split("\t")[1:]] for line in lines]
    assert told == loaded.predict_proba(X).tolist()


# --------------------------------------------------------------- definitions


def own_kernel(rows: list[str], cols: list[str], decay: float, weight: float) -> np.ndarray:
    """weight * norm(sst), tree by tree."""

    def value(a: str, b: str) -> float:
        return sst(parse(a), parse(b), decay)

    cross = np.array([[value(a, b) for b in cols] for a in rows])
    row, col = (np.array([value(a, a) for a in side]) for side in (rows, cols))
    return weight * cross / np.sqrt(np.outer(row, col))


def test_regression_by_definition(lengths):
    X, y = lengths[0][:30], np.array(lengths[1][:30])
    new = lengths[0][30:]
    model = GPRegressor(kernel="1*norm(sst(lambda=0.4))", fix="alpha").fit(X, y)
    found = model.hyperparameters_
    assert found.keys() == {"lambda", "alpha", "weight", "noise"} and found["alpha"] == 1
    assert found["noise"] == model.noise_ and 0 < model.noise_ < 1
    z, scale = (y - y.mean()) / y.std(), y.std()
    K = own_kernel(X, X, found["lambda"], found["weight"])
    G = K + model.noise_ * np.eye(len(X))
    half = np.linalg.cholesky(G)
    value = -0.5 * z @ np.linalg.solve(G, z) - np.log(np.diag(half)).sum() - 15 * np.log(2 * np.pi)
    assert model.log_marginal_likelihood_value_ == pytest.approx(value - 30 * np.log(scale), abs=1e-8)
    cross = own_kernel(new, X, found["lambda"], found["weight"])
    mean, std = model.predict(new, return_std=True)
    assert mean == pytest.approx(y.mean() + scale * cross @ np.linalg.solve(G, z), abs=1e-8)
    latent = found["weight"] - np.einsum("ij,ji->i", cross, np.linalg.solve(G, cross.T))
    assert std**2 == pytest.approx(scale**2 * (latent + model.noise_), abs=1e-8)
    assert model.predict(new, return_std=True, latent=True)[1] ** 2 == pytest.approx(scale**2 * latent, abs=1e-8)
    assert model.score(X, y) > 0.5


def test_classes_by_definition(questions):
    X, y = questions[0][:50], questions[1][:50]
    model = GPClassifier(kernel="2*norm(sst(lambda=0.3))", fix="*").fit(X, y)
    assert model.classes_.tolist() == ["HUM", "LOC"] and model.hyperparameters_["weight"] == 2
    new, sign = questions[0][50:60], np.where(np.array(y) == "LOC", 1.0, -1.0)
    K, f = own_kernel(X, X, 0.3, 2.0), np.zeros(50)
    for _ in range(60):  # Newton's method for the mode of the posterior
        ratio = normal.pdf(f) / normal.cdf(sign * f)
        slope, curve = sign * ratio, ratio**2 + sign * f * ratio
        f = K @ np.linalg.solve(np.eye(50) + np.diag(curve) @ K, curve * f + slope)
    ratio = normal.pdf(f) / normal.cdf(sign * f)
    slope, curve = sign * ratio, ratio**2 + sign * f * ratio
    cross = own_kernel(new, X, 0.3, 2.0)
    mean = cross @ slope
    variance = 2.0 - np.einsum("ij,ji->i", cross, np.linalg.solve(K + np.diag(1 / curve), cross.T))
    chance = normal.cdf(mean / np.sqrt(1 + variance))
    assert model.decision_function(new) == pytest.approx(mean, abs=1e-6)
    assert model.predict_proba(new)[:, 1] == pytest.approx(chance, abs=1e-6)
    assert model.predict_log_proba(new)[:, 0] == pytest.approx(np.log(1 - chance), abs=1e-5)
    sizes = np.linalg.slogdet(np.eye(50) + np.sqrt(np.outer(curve, curve)) * K)[1]
    evidence = np.log(normal.cdf(sign * f)).sum() - 0.5 * f @ slope - 0.5 * sizes
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, abs=1e-6)
    assert model.score(X, y) > 0.8


# -------------------------------------------------------------- scikit-learn


def test_the_same_in_scikit_learn(lengths):
    X, y = lengths[0], np.array(lengths[1])
    z, model = (y - y.mean()) / y.std(), GPRegressor(kernel="1*norm(sst(lambda=0.4))").fit(*lengths)
    kernel = GPKernel(str(model.kernel_)) + WhiteKernel(model.noise_)
    # It adds alpha to the diagonal, be it so little.
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-300).fit(X, z)
    expected = model.log_marginal_likelihood_value_ + len(X) * np.log(y.std())
    assert process.log_marginal_likelihood_value_ == pytest.approx(expected, abs=1e-8)
    mean, std = process.predict(X[:9], return_std=True)
    ours = model.predict(X[:9], return_std=True)
    assert y.mean() + y.std() * mean == pytest.approx(ours[0], abs=1e-7)
    assert y.std() * std == pytest.approx(ours[1], abs=1e-7)


def test_scikit_learn_learns(lengths):
    X, y = lengths[0], np.array(lengths[1])
    z, model = (y - y.mean()) / y.std(), GPRegressor(kernel="1*norm(sst(lambda=0.4))").fit(*lengths)
    kernel = GPKernel("1*norm(sst(lambda=0.4))") + WhiteKernel(0.1, (1e-7, 1e4))
    process = GaussianProcessRegressor(kernel, alpha=1e-300).fit(X, z)
    expected = model.log_marginal_likelihood_value_ + len(X) * np.log(y.std())
    assert process.log_marginal_likelihood_value_ == pytest.approx(expected, abs=0.01)
    assert np.abs(process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)[1]).max() < 0.1
    assert process.kernel_.k1.expression != kernel.k1.expression == "1*norm(sst(lambda=0.4))"
    assert pickle.loads(pickle.dumps(process)).predict(X[:3]).tolist() == process.predict(X[:3]).tolist()


@pytest.mark.parametrize(
    "expression",
    [
        "1*norm(sst(lambda=0.4))",
        "sasst(lambda=0.3, lambda.S=0.2, alpha.T=0.5)",
        "norm(ptk)*2*norm(sst) + 0.5*st(bow=0.1)",
        "norm(0.5*sst(lambda=0.7) + norm(ptk))^2",
    ],
)
def test_gradients(expression, lengths):
    X, kernel = lengths[0][:15], GPKernel(expression)
    values, gradient = kernel(X, eval_gradient=True)
    assert (values == kernel(X)).all() and (values == Kernel(expression)(X)).all()
    assert gradient.shape == (15, 15, kernel.n_dims) and (gradient == gradient.transpose(1, 0, 2)).all()
    for i, step in enumerate(1e-4 * np.eye(kernel.n_dims)):
        up, down = (kernel.clone_with_theta(kernel.theta + sign * step)(X) for sign in (1, -1))
        assert gradient[:, :, i] == pytest.approx((up - down) / 2e-4, abs=1e-6 * max(1, np.abs(gradient).max()))


def test_kernel_parameters(lengths):
    X = lengths[0][:8]
    kernel = GPKernel("2*sst(lambda=0.3)", bounds_by_name={"alpha": "fixed", "lambda": (0.1, 0.5)})
    assert [h.name for h in kernel.hyperparameters] == ["lambda", "alpha", "weight"]
    assert [h.fixed for h in kernel.hyperparameters] == [False, True, False]
    assert kernel.theta == pytest.approx(np.log([0.3, 2])) and kernel.n_dims == 2
    assert np.exp(kernel.bounds[0]) == pytest.approx([0.1, 0.5]) and kernel.bounds[1, 0] < np.log(2)
    assert kernel(X, eval_gradient=True)[1].shape == (8, 8, 2)
    moved = kernel.clone_with_theta(np.log([0.2, 5]))
    assert moved.get_params()["lambda"] == pytest.approx(0.2) and moved.get_params()["alpha"] == 1
    assert moved(X) == pytest.approx(Kernel("5*sst(lambda=0.2)")(X)) and kernel.get_params()["lambda"] == 0.3
    assert moved != kernel and clone(kernel) == kernel == pickle.loads(pickle.dumps(kernel))
    assert kernel.set_params(**{"lambda": 0.25}).get_params()["lambda"] == 0.25
    assert kernel.diag(X) == pytest.approx(np.diag(kernel(X))) and not kernel.is_stationary()
    assert kernel(X, X[:3]).shape == (8, 3) and not kernel.requires_vector_input
    both = ConstantKernel(2.0) * kernel + WhiteKernel(0.1)
    assert both.theta.shape == (4,) and not both.requires_vector_input
    assert both(X) == pytest.approx(2 * kernel(X) + 0.1 * np.eye(8))
    assert clone(both).set_params(k1__k2__weight=7.0).get_params()["k1__k2__weight"] == 7


def test_bounds_hold(lengths):
    kernel = GPKernel("1*norm(sst(lambda=0.4))")
    for side in (0, 1):
        at = kernel.clone_with_theta(kernel.bounds[:, side])
        assert at.theta == pytest.approx(kernel.bounds[:, side], abs=1e-12)
        assert (at.bounds == kernel.bounds).all()


def test_other_examples(lengths):
    """Sequences, vectors, and rows of several columns."""
    y = np.arange(6.0)
    words, matrix = ["a b", "b c d", "a", "d d", "a c", "b"], np.arange(12.0).reshape(6, 2)
    for kernel, X in (("norm(seq)", words), ("rbf(gamma=0.1)", matrix)):
        model = GaussianProcessRegressor(GPKernel(kernel) + WhiteKernel(0.1)).fit(X, y)
        assert model.predict(X[:2]).shape == (2,)
    rows = [{"t": tree, "w": text} for tree, text in zip(lengths[0], words)]
    model = GPRegressor(kernel="1*norm(sst(t)) + 1*norm(seq(w))").fit(rows, y)
    assert {"weight.1", "weight.2", "sst(t).lambda", "seq(w).lambda"} <= model.hyperparameters_.keys()
    assert model.predict(rows).shape == (6,)


def test_estimators(lengths, questions, tmp_path):
    X, y = lengths
    for model, target, inputs in (
        (GPRegressor(max_iterations=5), y, X),
        (GPClassifier(max_iterations=5), questions[1], questions[0]),
    ):
        assert repr(clone(model)) == repr(model)
        with pytest.raises(NotFittedError):
            model.predict(inputs)
        assert not hasattr(model, "kernel_") and not hasattr(model, "hyperparameters_")
        model.fit(inputs, target)
        copy = pickle.loads(pickle.dumps(model))
        assert copy.predict(inputs).tolist() == model.predict(inputs).tolist()
        assert copy.model_.to_bytes() == model.model_.to_bytes()
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert type(again) is type(model) and again.max_iterations == 5 and again.kernel == str(model.kernel_)
        assert again.log_marginal_likelihood_value_ == model.log_marginal_likelihood_value_
        one, four = (clone(model).set_params(threads=n).fit(inputs, target).model_.to_bytes() for n in (1, 4))
        assert one == four
        assert make_pipeline(clone(model)).fit(inputs, target).predict(inputs[:2]).shape == (2,)
        assert cross_val_predict(model, inputs, target, cv=3).shape == (len(inputs),)


def test_grid_search(lengths):
    X, y = lengths
    grid = {"kernel": ["1*norm(sst)", "1*sst(lambda=0.1)"], "standardise": ["unit", "mean"], "fix": ["", ["alpha"]]}
    search = GridSearchCV(GPRegressor(max_iterations=5), grid, cv=3).fit(X, y)
    assert search.best_params_.keys() == grid.keys() and search.predict(X).shape == (len(X),)
    grid = {"kernel__k1__lambda": [0.1, 0.4], "alpha": [0.1]}
    kernel = GPKernel("norm(sst)") + WhiteKernel(0.1)
    search = GridSearchCV(GaussianProcessRegressor(kernel, optimizer=None), grid, cv=3).fit(X, y)
    assert search.best_params_["kernel__k1__lambda"] in (0.1, 0.4)


# -------------------------------------------------------------- what it tells


def test_symbol_weights():
    X = ["(S (A a) (B b))", "(S (A a) (C\\(x c))", "(T (A a) (B b))", "(S (B b) (C\\(x d))", "(T (A b))"]
    model = GPRegressor(kernel="sasst(lambda=0.4)", max_iterations=5).fit(X, [1.0, 2.0, 1.5, 3.0, 0.5])
    weights = model.symbol_weights_
    assert weights.keys() == {"S", "A", "B", "T", "C(x"}
    assert all(weights[label] == model.hyperparameters_[f"lambda.{label}"] for label in weights)
    pytest.importorskip("matplotlib").use("Agg")
    from espalier import plot

    assert len(plot.symbol_weights(model).get_yticklabels()) == 5
    two = GPRegressor(kernel="sasst(t, lambda=0.4) + sasst(u)", max_iterations=1)
    two.fit([{"t": x, "u": x} for x in X], [1.0, 2.0, 1.5, 3.0, 0.5])
    assert {"sasst(t).S", "sasst(u).S"} <= two.symbol_weights_.keys()
    assert GPRegressor(kernel="sst", max_iterations=0).fit(X, [1, 2, 1, 3, 0]).symbol_weights_ == {}


def test_settings_as_lists_are_those_as_text(lengths):
    X, y = lengths
    texts = GPRegressor(kernel="sasst", fix="alpha,alpha.*", group="S,T;A,B", prior="lambda=0.4,1", max_iterations=3)
    lists = GPRegressor(
        kernel="sasst",
        fix=["alpha", "alpha.*"],
        group=[["S", "T"], ["A", "B"]],
        prior={"lambda": (0.4, 1)},
        max_iterations=3,
    )
    ours, theirs = lists.fit(X, y), texts.fit(X, y)
    assert ours.hyperparameters_ == theirs.hyperparameters_ and ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert ours.symbol_weights_["S"] == ours.symbol_weights_["T"] != ours.symbol_weights_["A"]


# ------------------------------------------------------------------ bad input


def test_constant_targets():
    with pytest.warns(UserWarning, match="all targets are the same"):
        model = GPRegressor().fit(["(S (A a))", "(S (B b))"], [3.0, 3.0])
    assert model.predict(["(S (C c))"]).tolist() == [3.0]


@pytest.mark.parametrize(
    "settings, y, message",
    [
        ({}, [1.0, float("nan"), 2.0], r"y\[1\] is NaN; every example needs a target"),
        ({}, [1.0, float("inf"), 2.0], r"y\[1\] is inf; targets must be finite"),
        ({}, ["a", "b", "c"], "a regression needs numbers"),
        ({}, None, "the target y is None"),
        ({"kernel": "sasst", "group": "S,QQQ"}, [1, 2, 3], "group names the unknown label 'QQQ'; there are A, B, S"),
        ({"group": "S"}, [1, 2, 3], "group names 'S', but the kernel has no values by label"),
        ({"group": ["S"]}, [1, 2, 3], r"group is \['S'\]; allowed are lists of labels"),
        ({"fix": "gamma"}, [1, 2, 3], "fix names 'gamma', which is no hyperparameter; there are lambda, alpha"),
        ({"fix": [1]}, [1, 2, 3], "fix is .*; allowed are names or patterns"),
        ({"prior": {"lambda": 3}}, [1, 2, 3], "prior is .*; allowed is a dict of"),
        ({"noise": -1.0}, [1, 2, 3], "noise"),
        ({"mean": "none"}, [1, 2, 3], "zero or constant"),
        ({"standardise": "yes"}, [1, 2, 3], "unit, mean or none"),
        ({"kernel": "fsst"}, [1, 2, 3], "selects patterns"),
        ({"kernel": GPKernel("sst")}, [1, 2, 3], "kernel is a GPKernel; allowed is an expression"),
    ],
)
def test_bad_regressions(settings, y, message):
    with pytest.raises(ValueError, match=message):
        GPRegressor(**settings).fit(["(S (A a))", "(S (B b))", "(S (A b))"], y)


def test_bad_classes():
    X = ["(S (A a))", "(S (B b))", "(S (A b))"]
    with pytest.raises(ValueError, match="all examples are of class|two classes"):
        GPClassifier().fit(X, ["a", "a", "a"])


def test_bad_kernels(lengths):
    X = lengths[0]
    for bounds, message in (
        ({"gamma": (1, 2)}, "bounds_by_name names 'gamma', which is no hyperparameter; there are lambda, alpha"),
        ({"lambda": (0, 2)}, "the bounds of 'lambda' are .*; allowed are two numbers > 0, or 'fixed'"),
        ({"lambda": "free"}, "the bounds of 'lambda' are 'free'"),
    ):
        with pytest.raises(ValueError, match=message):
            GPKernel("sst", bounds_by_name=bounds)
    kernel = GPKernel("sst")
    with pytest.raises(ValueError, match="unknown|no kernel|kernel expression"):
        GPKernel("nonsense(")
    with pytest.raises(ValueError, match="theta has 1 entries; there are 2"):
        kernel.theta = [0.0]  # type: ignore[assignment]
    with pytest.raises(ValueError, match="lambda is -1; allowed are numbers > 0"):
        kernel.set_params(**{"lambda": -1.0})
    with pytest.raises(ValueError, match="has no parameter 'gamma'; there are"):
        kernel.set_params(gamma=1.0)
    with pytest.raises(ValueError, match="Y is None"):
        kernel(X, X, eval_gradient=True)
    with pytest.raises(MemoryError, match="derivatives of 40 x 40 values by 2 hyperparameters take"):
        GPKernel("sst", memory=20_000)(X, eval_gradient=True)


def test_interrupted(lengths):
    """The library would keep the best so far; Python has an exception to raise."""

    class Stop(Exception):
        pass

    def stop(stage: str, fraction: float) -> None:
        raise Stop(stage)

    X, y = lengths[0] * 8, lengths[1] * 8
    with pytest.raises(Stop):
        GPRegressor(kernel="sasst", restarts=50, progress=stop).fit(X, y)
    with pytest.raises(Stop):
        GPKernel("ptk", progress=stop)(X * 2, eval_gradient=True)


def test_public_names():
    assert {"GPRegressor", "GPClassifier", "GPKernel"} <= set(espalier.__all__)
