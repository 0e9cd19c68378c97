"""Gaussian processes: joint posteriors, draws, likelihoods at given values and several classes, against definitions in
NumPy and against scikit-learn."""

from __future__ import annotations

import copy
import json
import pickle
import random

import numpy as np
import pytest
from conftest import random_tree
from scipy.stats import norm as normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.multiclass import OneVsRestClassifier

from espalier import GPClassifier, GPKernel, GPRegressor, Kernel, load, read

KERNEL = "2*norm(sst(lambda=0.3))"


@pytest.fixture(scope="module")
def lengths() -> tuple[list[str], np.ndarray]:
    """Trees, and a number that has to do with them."""
    draw = random.Random(17)
    trees = [random_tree(draw, 3) for _ in range(40)]
    return trees, np.array([10 + 3 * tree.count("S") - tree.count("(A a)") + draw.gauss(0, 0.3) for tree in trees])


@pytest.fixture(scope="module")
def kinds() -> tuple[list[str], np.ndarray]:
    """Trees of three kinds that are not easy to tell apart."""
    draw = random.Random(5)
    labels = [draw.choice(["one", "two", "three"]) for _ in range(60)]
    marks = {"one": "(X x)", "two": "(Y y)", "three": "(Z z)"}
    seen = [label if draw.random() < 0.7 else draw.choice(list(marks)) for label in labels]
    return [f"(S {marks[mark]} {random_tree(draw, 2)})" for mark in seen], np.array(labels)


# ------------------------------------------------------------ joint posterior


def posterior(model: GPRegressor, X: list[str], y: np.ndarray, new: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the function by the textbook's formula, from Gram matrices."""
    kernel, noise = model.kernel_, model.noise_
    gram, cross, own = kernel(X), kernel(new, X), kernel(new)
    whole = gram + noise * np.eye(len(X))
    z = (y - y.mean()) / y.std()
    mean = y.mean() + y.std() * cross @ np.linalg.solve(whole, z)
    return mean, y.var() * (own - cross @ np.linalg.solve(whole, cross.T))


def test_covariances_by_definition(lengths):
    X, y = lengths
    model = GPRegressor(kernel=KERNEL).fit(X[:30], y[:30])
    new = [*X[30:], X[0]]
    mean, covariance = posterior(model, X[:30], y[:30], new)
    told = model.predict(new, return_cov=True, latent=True)
    assert told[0] == pytest.approx(mean, abs=1e-8) and told[1] == pytest.approx(covariance, abs=1e-8)
    assert (told[1] == told[1].T).all()
    noisy = model.predict(new, return_cov=True)[1]
    assert noisy == pytest.approx(covariance + y[:30].var() * model.noise_ * np.eye(len(new)), abs=1e-8)
    for latent in (False, True):
        std = model.predict(new, return_std=True, latent=latent)[1]
        assert std**2 == pytest.approx(np.diag(model.predict(new, return_cov=True, latent=latent)[1]), abs=1e-8)
    with pytest.raises(ValueError, match="return_std and return_cov are both set"):
        model.predict(new, return_std=True, return_cov=True)


def test_covariances_with_inducing_examples(lengths):
    X, y = lengths
    model = GPRegressor(kernel=KERNEL, inducing=12, fix="*").fit(X, y)
    for latent in (False, True):
        std = model.predict(X[:7], return_std=True, latent=latent)[1]
        covariance = model.predict(X[:7], return_cov=True, latent=latent)[1]
        assert std**2 == pytest.approx(np.diag(covariance), abs=1e-8)
        assert np.linalg.eigvalsh(covariance).min() > -1e-8
    all_of_them = GPRegressor(kernel=KERNEL, inducing=len(X), fix="*").fit(X, y)
    exact = GPRegressor(kernel=KERNEL, fix="*").fit(X, y)
    told, expected = (m.predict(X[:7], return_cov=True)[1] for m in (all_of_them, exact))
    assert told == pytest.approx(expected, abs=1e-6)


def assert_moments(draws: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> None:
    """Within five standard errors."""
    count, size = draws.shape[1], np.diag(covariance)
    assert (np.abs(draws.mean(axis=1) - mean) < 5 * np.sqrt(size / count)).all()
    error = np.sqrt((np.outer(size, size) + covariance**2) / count)
    assert (np.abs(np.cov(draws) - covariance) < 5 * error).all()


def test_draws(lengths):
    X, y = lengths
    model = GPRegressor(kernel=KERNEL).fit(X[:30], y[:30])
    new = X[30:]
    mean, covariance = posterior(model, X[:30], y[:30], new)
    noise = y[:30].var() * model.noise_ * np.eye(len(new))
    assert_moments(model.sample_y(new, 20000, random_state=3, latent=True), mean, covariance)
    assert_moments(model.sample_y(new, 20000, random_state=3), mean, covariance + noise)
    with pytest.raises(AssertionError):  # the test can fail
        assert_moments(model.sample_y(new, 20000, random_state=3), mean, covariance)
    assert model.sample_y(new).shape == (len(new), 1)
    same, more = model.sample_y(new, 3, random_state=9), model.sample_y(new, 8, random_state=9)
    assert (same == more[:, :3]).all() and (same != model.sample_y(new, 3, random_state=8)).any()
    generator = np.random.RandomState(1)
    first, second = model.sample_y(new, 2, generator), model.sample_y(new, 2, generator)
    assert (first != second).any() and (first == model.sample_y(new, 2, np.random.RandomState(1))).all()
    assert model.sample_y(new, 2, None).shape == (len(new), 2)


def test_draws_as_on_the_command_line(tool, lengths, kinds, tmp_path):
    for model, (X, y) in ((GPRegressor(kernel=KERNEL), lengths), (GPClassifier(kernel=KERNEL), kinds)):
        path, data = tmp_path / "model", tmp_path / "data.jsonl"
        data.write_text("".join(json.dumps({"tree": x}) + "\n" for x in X[:9]))
        model.fit(X, y).save(path)
        lines = tool("predict", "-q", "--samples", "4", "--seed", "6", path, data).splitlines()
        drawn = [line.split("\t")[2:] for line in lines]
        told = model.sample_y(X[:9], 4, random_state=6)
        assert told.tolist() == [[told.dtype.type(field) for field in line] for line in drawn]


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_bad_draws(count, lengths):
    model = GPRegressor(kernel=KERNEL, fix="*").fit(*lengths)
    with pytest.raises(ValueError, match="n_samples is .*; allowed is a whole number > 0"):
        model.sample_y(lengths[0], count)
    with pytest.raises(ValueError, match="random_state is -1; allowed is a whole number >= 0"):
        model.sample_y(lengths[0], 1, -1)
    with pytest.raises(NotFittedError):
        GPRegressor().sample_y(lengths[0])
    with pytest.raises(MemoryError, match="the joint distribution of 40 examples takes"):
        model.set_params(memory=30000).sample_y(lengths[0])


# ---------------------------------------------------------------- likelihoods


def test_likelihood_as_in_scikit_learn(lengths):
    X, y = lengths
    model = GPRegressor(kernel=KERNEL, standardise="none", max_iterations=3).fit(X, y)
    process = GaussianProcessRegressor(
        GPKernel(str(model.kernel_)) + WhiteKernel(model.noise_), optimizer=None, alpha=1e-300
    ).fit(X, y)
    theta = np.log(list(model.hyperparameters_.values()))
    assert theta == pytest.approx(process.kernel_.theta)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood(theta) == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-12)
    for move in (0.0, 0.2, -0.3):
        value, gradient = model.log_marginal_likelihood(theta + move, eval_gradient=True)
        expected = process.log_marginal_likelihood(theta + move, eval_gradient=True)
        assert value == pytest.approx(expected[0], rel=1e-9) and gradient == pytest.approx(expected[1], rel=1e-6)
    assert model.log_marginal_likelihood(eval_gradient=True)[0] == pytest.approx(model.log_marginal_likelihood_value_)


def test_likelihood_of_targets_as_given(lengths):
    once = np.unique(lengths[0], return_index=True)[1]  # no noise can tell equal trees apart
    X, y = [lengths[0][i] for i in once], lengths[1][once]
    for settings in ({"mean": "constant"}, {"noise": 0.0}, {"standardise": "mean"}):
        model = GPRegressor(kernel=KERNEL, max_iterations=4, **settings).fit(X, y)
        theta = np.log([value for value in model.hyperparameters_.values() if value > 0])
        assert model.log_marginal_likelihood(theta) == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-9)


def test_likelihood_of_classes(kinds):
    X, y = kinds
    for model in (GPClassifier(kernel=KERNEL).fit(X, y), GPClassifier(kernel=KERNEL).fit(X, y == "one")):
        theta = np.log(list(model.hyperparameters_.values()))
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-12)
        for at in range(len(theta)):
            step = 1e-4 * np.eye(len(theta))[at]
            up, down = (model.log_marginal_likelihood(theta + sign * step) for sign in (1, -1))
            assert gradient[at] == pytest.approx((up - down) / 2e-4, abs=1e-4)


def test_likelihood_needs_the_examples(lengths, tmp_path):
    model = GPRegressor(kernel=KERNEL, fix="*").fit(*lengths)
    theta = np.log(list(model.hyperparameters_.values()))
    model.save(tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), load(tmp_path / "model")):
        assert other.log_marginal_likelihood() == model.log_marginal_likelihood_value_
        with pytest.raises(ValueError, match="needs the examples"):
            other.log_marginal_likelihood(theta)
    with pytest.raises(ValueError, match="needs the examples, without inducing"):
        clone(model).set_params(inducing=9).fit(*lengths).log_marginal_likelihood(theta)
    with pytest.raises(ValueError, match=r"theta has the shape \(2,\); allowed are 4 numbers"):
        model.log_marginal_likelihood(theta[:2])
    with pytest.raises(ValueError):
        model.log_marginal_likelihood(theta * np.nan)


# ------------------------------------------------------------ several classes


def laplace(gram: np.ndarray, sign: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log evidence, and first and second derivatives at the mode, by Newton's method on the definition."""
    f, n = np.zeros(len(sign)), len(sign)
    for _ in range(80):
        ratio = normal.pdf(f) / normal.cdf(sign * f)
        slope, curve = sign * ratio, ratio**2 + sign * f * ratio
        f = gram @ np.linalg.solve(np.eye(n) + np.diag(curve) @ gram, curve * f + slope)
    ratio = normal.pdf(f) / normal.cdf(sign * f)
    slope, curve = sign * ratio, ratio**2 + sign * f * ratio
    size = np.linalg.slogdet(np.eye(n) + np.sqrt(np.outer(curve, curve)) * gram)[1]
    return np.log(normal.cdf(sign * f)).sum() - 0.5 * f @ slope - 0.5 * size, slope, curve


def test_several_classes_by_definition(kinds):
    X, y = kinds[0][:48], kinds[1][:48]
    new = kinds[0][48:]
    model = GPClassifier(kernel=KERNEL, fix="*").fit(X, y)
    assert model.classes_.tolist() == ["one", "three", "two"]
    kernel = Kernel(KERNEL)
    gram, cross = kernel(X), kernel(new, X)
    evidence, means, chances = 0.0, [], []
    for label in model.classes_:
        value, slope, curve = laplace(gram, np.where(y == label, 1.0, -1.0))
        evidence += value
        means.append(cross @ slope)
        variance = 2.0 - np.einsum("ij,ji->i", cross, np.linalg.solve(gram + np.diag(1 / curve), cross.T))
        chances.append(normal.cdf(means[-1] / np.sqrt(1 + variance)))
    each = np.array(chances)
    only = np.array([each[c] * np.prod(1 - np.delete(each, c, 0), axis=0) for c in range(3)])
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, rel=1e-9)
    assert model.decision_function(new) == pytest.approx(np.array(means).T, abs=1e-8)
    assert model.predict_proba(new) == pytest.approx((only / only.sum(axis=0)).T, abs=1e-8)
    assert model.predict(new).tolist() == model.classes_[only.argmax(axis=0)].tolist()
    # The same as one estimator per class with these values, but for how they are put together.
    rest = OneVsRestClassifier(GPClassifier(kernel=KERNEL, fix="*")).fit(X, y)
    parts = np.array([part.predict_proba(new)[:, 1] for part in rest.estimators_])
    assert parts == pytest.approx(each, abs=1e-8)


def test_several_classes(kinds, tmp_path):
    X, y = kinds
    model = GPClassifier(kernel="1*norm(sst(lambda=0.3))", max_iterations=10).fit(X, y)
    start = GPClassifier(kernel="1*norm(sst(lambda=0.3))", fix="*").fit(X, y)
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert (model.predict(X) == model.classes_[model.predict_proba(X).argmax(axis=1)]).all()
    assert model.score(X, y) > 0.6
    model.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.predict(X).tolist() == model.predict(X).tolist()
        assert (other.predict_proba(X) == model.predict_proba(X)).all()
    numbers = np.array([{"one": 10, "two": 9, "three": 1}[label] for label in y])  # an order of its own
    other = GPClassifier(kernel="1*norm(sst(lambda=0.3))", max_iterations=10).fit(X, numbers)
    assert other.classes_.tolist() == [1, 9, 10]
    assert other.predict_proba(X) == pytest.approx(model.predict_proba(X)[:, [1, 2, 0]], abs=1e-6)


def test_draws_of_classes(kinds):
    X, y = kinds
    model = GPClassifier(kernel=KERNEL, fix="*").fit(X, y == "one")
    drawn, chance = model.sample_y(X[:8], 20000, random_state=2), model.predict_proba(X[:8])[:, 1]
    assert drawn.dtype == bool
    assert (np.abs(drawn.mean(axis=1) - chance) < 5 * np.sqrt(chance * (1 - chance) / 20000)).all()
    several = GPClassifier(kernel=KERNEL, fix="*").fit(X, y)
    assert set(several.sample_y(X[:8], 300).ravel()) == {"one", "two", "three"}


def test_model_of_several_classes(kinds, tmp_path):
    X, y = kinds
    model = GPClassifier(kernel=KERNEL, fix="*").fit(X, y).model_
    covariance, latent = model.covariance(X[:5]), model.samples(X[:5], 20000, 3, latent=True)
    assert covariance.shape == (3, 5, 5) and latent.shape == (5, 3, 20000)
    for c in range(3):
        assert_moments(latent[:, c], model.predict(X[:5], "scores")[:, c], covariance[c])
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"y": label, "tree": x}) + "\n" for x, label in zip(X, y)))
    assert GPClassifier(kernel=KERNEL, fix="*").fit(read(path)).model_.to_bytes() == model.to_bytes()
