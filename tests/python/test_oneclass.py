"""The one-class machine, against scikit-learn's on the same Gram matrix."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import sklearn.svm
from conftest import random_tree
from sklearn.base import clone, is_outlier_detector

from espalier import Kernel, OneClassSVM, load

KERNEL = "norm(sst(lambda=0.4)) + 0.3*norm(ptk)"


@pytest.fixture(scope="module")
def trees():
    draw = random.Random(5)
    return [f"(S {random_tree(draw)} (K{draw.randrange(3)} x))" for _ in range(120)]


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.7])
def test_as_scikit_learn(trees, nu):
    kernel = Kernel(KERNEL)
    ours = OneClassSVM(kernel=KERNEL, nu=nu, tolerance=1e-7).fit(trees[:90])
    theirs = sklearn.svm.OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9).fit(kernel(trees[:90]))
    expected = theirs.decision_function(kernel(trees, trees[:90]))
    np.testing.assert_allclose(ours.decision_function(trees), expected, atol=1e-4)
    sure = np.abs(expected) > 1e-4
    np.testing.assert_array_equal(ours.predict(trees)[sure], theirs.predict(kernel(trees, trees[:90]))[sure])


def test_it_is_an_outlier_detector(trees):
    model = OneClassSVM(nu=0.2)
    assert is_outlier_detector(model)
    assert clone(model).get_params() == model.get_params()
    inside = model.fit_predict(trees)
    assert set(inside) == {-1, 1}
    assert np.mean(model.decision_function(trees) < -0.001) <= 0.2  # the others may lie on the border
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(trees), model.decision_function(trees))


def test_files(trees, tmp_path):
    model = OneClassSVM(kernel=KERNEL, nu=0.25).fit(trees)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, OneClassSVM) and loaded.nu == 0.25
    np.testing.assert_array_equal(loaded.predict(trees), model.predict(trees))


def test_wrong_values(trees):
    with pytest.raises(ValueError, match="nu is '0.0'; allowed is a number > 0, at most 1"):
        OneClassSVM(nu=0.0).fit(trees)
    with pytest.raises(ValueError, match="X has no examples"):
        OneClassSVM().fit([])
