"""GPKernel in the hands of scikit-learn's optimiser, whose steps can be long."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel

from espalier import GPKernel, RangeError

pytestmark = pytest.mark.filterwarnings("ignore:The optimal value found:sklearn.exceptions.ConvergenceWarning")

# Trees of programs have many children: values grow fast with the decays.
STATEMENTS = ["(Assign (Name n) (Call (Name n) (Name n) (Constant c)))", "(Return (Name n))", "(Expr (Call (Name n)))"]


def programs(seed: int, count: int = 25) -> tuple[list[str], list[float]]:
    """Trees, and numbers that have nothing to do with them."""
    draw = random.Random(seed)
    trees = [f"(Def {' '.join(draw.choices(STATEMENTS, k=draw.randint(1, 25)))})" for _ in range(count)]
    return trees, [draw.gauss(0, 1) for _ in trees]


@pytest.mark.parametrize("kernel, seed", [("1*norm(ptk)", 0), ("1*norm(ptk)", 1), ("1*norm(sst)", 2), ("1*sst", 3)])
def test_fits_where_steps_are_long(kernel, seed):
    X, y = programs(seed)
    process = GaussianProcessRegressor(GPKernel(kernel) + WhiteKernel(0.1)).fit(X, y)
    assert np.isfinite(process.log_marginal_likelihood_value_) and np.isfinite(process.predict(X)).all()
    start = GPKernel(kernel) + WhiteKernel(0.1)
    assert process.log_marginal_likelihood_value_ > process.log_marginal_likelihood(start.theta)


def test_default_bounds():
    kernel = GPKernel("ptk + 2*sasst(t, lambda.S=0.1) + rbf(x, gamma=3) + seq(w)*sst(t)")
    most = {hyper.name: hyper.bounds[0, 1] for hyper in kernel.hyperparameters}
    for name in ("mu", "ptk().lambda", "sasst(t).lambda", "sasst(t).lambda.S", "sst(t).lambda"):
        assert most[name] == 1
    assert most["terminal"] == 10 and most["gamma"] > 1000 and most["weight"] > 1000
    assert GPKernel("sst(lambda=3)").bounds[0] == pytest.approx(np.log([1e-8, 3]))
    wide = GPKernel("norm(sst)", bounds_by_name={"lambda": (0.1, 50)})
    assert wide.bounds[0] == pytest.approx(np.log([0.1, 50]))


def test_a_step_too_far():
    """What the optimiser sees beyond what fits a number: low, finite and flat."""
    X, y = programs(1)
    bounds = {"lambda": (1e-8, 1e4), "mu": (1e-8, 1e4)}
    kernel = GPKernel("1*norm(ptk)", bounds_by_name=bounds)
    far = np.log([1e4, 1e4, 1.0, 1.0])
    kernel(X, eval_gradient=True)
    kernel.theta = far
    values, gradient = kernel(X, eval_gradient=True)
    assert np.isfinite(values).all() and np.diag(values).min() > 1e100
    assert gradient.shape == (len(X), len(X), 4) and not gradient.any()
    process = GaussianProcessRegressor(GPKernel("1*norm(ptk)", bounds_by_name=bounds) + WhiteKernel(0.1)).fit(X, y)
    assert np.isfinite(process.log_marginal_likelihood_value_) and np.isfinite(process.predict(X)).all()


def test_where_it_starts_or_ends_is_no_guess():
    X, y = programs(1)
    far = GPKernel("1*norm(ptk(lambda=1e4, mu=1e4))")
    with pytest.raises(RangeError, match="take a smaller lambda") as caught:
        GaussianProcessRegressor(far + WhiteKernel(0.1)).fit(X, y)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, ArithmeticError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    kernel = GPKernel("1*norm(ptk)", bounds_by_name={"lambda": (1e-8, 1e4), "mu": (1e-8, 1e4)})
    kernel(X, eval_gradient=True)
    kernel.theta = np.log([1e4, 1e4, 1.0, 1.0])
    kernel(X, eval_gradient=True)
    with pytest.raises(RangeError, match="take a smaller lambda"):
        kernel(X)
    kernel.theta = np.log([0.4, 0.4, 1.0, 1.0])
    assert kernel(X) == pytest.approx(GPKernel("1*norm(ptk)")(X))
