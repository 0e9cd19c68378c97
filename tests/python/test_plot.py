"""Pictures are drawn, and show what they were given; what they look like is for eyes."""

from __future__ import annotations

import builtins
import doctest
import itertools
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from espalier import plot  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    plt.close("all")  # those of other tests
    yield
    plt.close("all")


def drawn(ax: plt.Axes) -> plt.Axes:
    ax.figure.canvas.draw()
    return ax


def names(labels: list) -> list[str]:
    return [label.get_text() for label in labels]


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(plot).failed == 0


def test_gram_puts_similar_examples_together() -> None:
    rng = np.random.default_rng(1)
    groups = rng.permutation(np.repeat([0, 1, 2], 5))
    points = 10 * np.eye(3)[groups] + rng.normal(size=(15, 3))
    K = points @ points.T
    ax = drawn(plot.gram(K, labels=list(groups)))
    order = names(ax.get_yticklabels())
    assert sum(a != b for a, b in itertools.pairwise(order)) == 2
    shown = np.asarray(ax.images[0].get_array())
    assert np.allclose(np.sort(shown.ravel()), np.sort(K.ravel())) and np.allclose(shown, shown.T)
    assert np.array_equal(np.asarray(drawn(plot.gram(K, order=False)).images[0].get_array()), K)


@pytest.mark.parametrize("count", [1, 2, 3, 41, 120])
@pytest.mark.parametrize("classes", [1, 3, 50])
def test_gram_of_any_size(count: int, classes: int) -> None:
    K = np.ones((count, count))
    drawn(plot.gram(K, labels=[f"class {i % classes}" for i in range(count)]))


def test_confusion() -> None:
    ax = drawn(plot.confusion(list("aabbb"), list("abbbb")))
    assert names(ax.texts) == ["1", "1", "0", "3"] and names(ax.get_xticklabels()) == ["a", "b"]
    ax = drawn(plot.confusion(list("aabbb"), list("abbbb"), labels=["b", "a", "c"], normalize=True))
    assert names(ax.texts) == ["1.00", "0.00", "0.00", "0.50", "0.50", "0.00", "0.00", "0.00", "0.00"]
    assert names(drawn(plot.confusion([2, 10], [10, 2])).get_xticklabels()) == ["2", "10"]
    assert names(drawn(plot.confusion(["$a_$", 2], [2, 2])).get_xticklabels()) == ["$a_$", "2"]
    drawn(plot.confusion(range(100), range(100)))
    with pytest.raises(ValueError, match="the class 'b' is not among the labels 'a'"):
        plot.confusion(["a"], ["b"], labels=["a"])


def test_learning_curve() -> None:
    scores = [[0.5, 0.7], [0.6, 0.8], [0.9, 0.9]]
    ax = drawn(plot.learning_curve([10, 100, 1000], scores, name="accuracy", log=True))
    assert np.allclose(ax.lines[0].get_ydata(), [0.6, 0.7, 0.9]) and ax.get_ylabel() == "accuracy"
    assert len(ax.collections) == 1 and ax.get_xscale() == "log" and ax.get_legend() is None
    ax = drawn(plot.learning_curve([1, 2], {f"$k_{i}": [0, 1] for i in range(9)}))
    assert len(ax.lines) == 9 and len(ax.collections) == 0 and ax.get_legend() is not None


def test_gp() -> None:
    ax = drawn(plot.gp([3, 1, 2], [30, 10, 20], [1, 4, 9], y=[31, 11, 21]))
    assert list(ax.lines[0].get_xdata()) == [1, 2, 3] and list(ax.lines[0].get_ydata()) == [10, 20, 30]
    assert list(ax.lines[1].get_ydata()) == [11, 21, 31]
    wide, narrow = (band.get_paths()[0].vertices[:, 1] for band in ax.collections)
    assert (wide.min(), wide.max()) == (6, 32) and (narrow.min(), narrow.max()) == (8, 31)
    assert list(drawn(plot.gp(None, [3, 1], [0, 0])).lines[0].get_ydata()) == [1, 3]
    with pytest.raises(ValueError, match=r"a variance is negative \(-1\)"):
        plot.gp(None, [1], [-1])


def test_symbol_weights() -> None:
    ax = drawn(plot.symbol_weights(SimpleNamespace(symbol_weights_={"a": 0.1, "b": -2.0, "$c_$": 1.0}), top=2))
    assert names(ax.get_yticklabels()) == ["b", "$c_$"]
    assert [bar.get_width() for bar in ax.patches] == [-2.0, 1.0]
    with pytest.raises(ValueError, match="not list"):
        plot.symbol_weights([1, 2])


def test_tree() -> None:
    ax = drawn(plot.tree(("S", ("NP", "$x$"), "a^{b"), contributions=[1, 0, -1, 0]))
    assert names(ax.texts) == ["S", "NP", "a^{b", "$x$"]
    ax = drawn(plot.tree(["a"] + ["b"] * 1000))
    assert "of 1,001 nodes shown" in ax.get_title() and len(ax.texts) < 100
    with pytest.raises(ValueError, match="3 contributions for a tree of 2 nodes"):
        plot.tree("(A b)", contributions=[1, 2, 3])


def test_axes_that_are_given_are_used() -> None:
    _, axes = plt.subplots(2, 3)
    a, b, c, d, e, f = axes.ravel()
    assert plot.gram(np.eye(4), ax=a) is a
    assert plot.confusion(["a"], ["a"], ax=b) is b
    assert plot.learning_curve([1], [1], ax=c) is c
    assert plot.gp(None, [1], [1], ax=d) is d
    assert plot.symbol_weights({"a": 1}, ax=e) is e
    assert plot.tree("(A b)", ax=f) is f


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: plot.gram([[1, 2]]), r"this one is of shape \(1, 2\)"),
        (lambda: plot.gram([[1.0, np.nan], [np.nan, 1.0]]), "nan or inf"),
        (lambda: plot.gram(np.eye(2), labels=["a"]), "different lengths: K has 2, labels has 1"),
        (lambda: plot.gram([]), "there are no values"),
        (lambda: plot.confusion([], []), "there are no predictions"),
        (lambda: plot.confusion(["a"], []), "different lengths: y_true has 1, y_pred has 0"),
        (lambda: plot.learning_curve([1, 2], [1]), "different lengths"),
        (lambda: plot.gp([1], [1, 2], [1, 2]), "different lengths: mean has 2, x has 1"),
        (lambda: plot.symbol_weights({}), "there are no weights"),
    ],
)
def test_what_cannot_be_drawn(call, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        call()
    assert not plt.get_fignums()


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def refuse(name: str, *args: object, **rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return usual(name, *args, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'espalier-kernels\[plot\]'"):
        plot.tree("(A b)")
