"""Pictures with matplotlib, which is needed for these only: ``pip install 'espalier-kernels[plot]'``.

Each function draws into ``ax``, or into a new figure, and returns the axes, so that titles, limits and files are up to
you. The colours can be told apart by colour-blind eyes.

>>> import espalier.plot
>>> ax = espalier.plot.confusion(["a", "b", "b"], ["a", "b", "a"])
>>> ax.get_xlabel()
'predicted'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._explain import Explanation
from ._svg import NEGATIVE, POSITIVE, arrange, shades
from ._trees import tree as _as_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

__all__ = ["confusion", "gp", "gram", "learning_curve", "symbol_weights", "tree"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
_READABLE = 40  # as many names fit at an axis


def _axes(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """The axes to draw into."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib; install it with: pip install 'espalier-kernels[plot]'") from None
    if ax is not None:
        return ax
    return plt.subplots(figsize=size, layout="constrained")[1]


def _numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError(f"there are no {what} to draw")
    if not np.isfinite(array).all():
        raise ValueError(f"some of the {what} are nan or inf, which cannot be drawn")
    return array


def _same_length(**arrays: Any) -> None:
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError("different lengths: " + ", ".join(f"{name} has {size}" for name, size in sizes.items()))


def gram(K: ArrayLike, labels: Sequence[Any] | None = None, *, order: bool = True, ax: Axes | None = None) -> Axes:
    """A Gram matrix as a heat-map, with similar examples next to each other: in the order of the leaves of a
    dendrogram (average linkage of the distances that belong to the kernel), unless ``order`` is false. ``labels``
    name the examples, such as their classes; where they are too many to read, a strip at the left has a colour for
    each class.

    >>> ax = gram([[1, 0.2, 0.9], [0.2, 1, 0.1], [0.9, 0.1, 1]], labels=["x", "y", "z"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['y', 'x', 'z']
    """
    values = _numbers(K, "values of the Gram matrix")
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"a Gram matrix has as many rows as columns; this one is of shape {values.shape}")
    names = None if labels is None else [str(label) for label in labels]
    if names is not None:
        _same_length(K=values, labels=names)
    ax = _axes(ax, (5.6, 4.8))
    places = _dendrogram_order(values) if order else np.arange(len(values))
    image = ax.imshow(values[np.ix_(places, places)], cmap="viridis", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="kernel")
    ax.set_xticks([])
    ax.set_yticks([])
    if names is not None:
        _name_rows(ax, [names[place] for place in places])
    else:
        ax.set_xlabel(f"{len(values)} examples" + (", similar ones together" if order else ""))
    return ax


def _dendrogram_order(K: NDArray[np.float64]) -> NDArray[np.intp]:
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(K) < 3:
        return np.arange(len(K))
    diagonal = np.diag(K)
    squares = diagonal[:, None] + diagonal[None, :] - K - K.T
    distances = np.sqrt(np.maximum(squares, 0.0))
    np.fill_diagonal(distances, 0.0)
    # The best order of the leaves takes cubic time: for large matrices nobody would see the difference.
    links = linkage(squareform(distances, checks=False), "average", optimal_ordering=len(K) <= 500)
    return np.asarray(leaves_list(links), dtype=np.intp)


def _name_rows(ax: Axes, names: list[str]) -> None:
    if len(names) <= _READABLE:
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small", parse_math=False)
        ax.set_yticks(range(len(names)), names, fontsize="small", parse_math=False)
        return
    classes = sorted(set(names))
    if len(classes) > len(_COLOURS):
        ax.set_xlabel(f"{len(names)} examples of {len(classes)} classes")
        return
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    strip = ax.inset_axes((-0.045, 0.0, 0.03, 1.0))
    codes = np.array([[classes.index(name)] for name in names])
    colours = ListedColormap(_COLOURS[: len(classes)])
    strip.imshow(codes, cmap=colours, vmin=-0.5, vmax=len(classes) - 0.5, aspect="auto", interpolation="nearest")
    strip.set_axis_off()
    keys = [Patch(color=_COLOURS[i], label=name) for i, name in enumerate(classes)]
    columns = min(len(keys), 4)
    _legend(ax, handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=columns, fontsize="small")


def _legend(ax: Axes, **options: Any) -> None:
    for text in ax.legend(frameon=False, **options).get_texts():
        text.set_parse_math(False)  # a dollar in a name is a dollar


def _in_order(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=str)


def confusion(
    y_true: Sequence[Any] | NDArray[Any],
    y_pred: Sequence[Any] | NDArray[Any],
    *,
    labels: Sequence[Any] | None = None,
    normalize: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """How often each class (a row) was predicted as which (a column). ``labels`` gives classes and their order; with
    ``normalize`` the rows are shares of their class.

    >>> ax = confusion(["a", "b", "b"], ["a", "b", "a"])
    >>> [text.get_text() for text in ax.texts]
    ['1', '0', '1', '1']
    """
    true, predicted = [str(y) for y in y_true], [str(y) for y in y_pred]
    _same_length(y_true=true, y_pred=predicted)
    if not true:
        raise ValueError("there are no predictions to draw")
    classes = [str(label) for label in (_in_order({*y_true, *y_pred}) if labels is None else labels)]
    place = {name: i for i, name in enumerate(classes)}
    unknown = {*true, *predicted} - set(classes)
    if unknown:
        raise ValueError(f"the class {min(unknown)!r} is not among the labels {', '.join(map(repr, classes[:8]))}")
    counts = np.zeros((len(classes), len(classes)))
    np.add.at(counts, ([place[y] for y in true], [place[y] for y in predicted]), 1.0)
    sums = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
    ax = _axes(ax, (max(3.6, 0.5 * len(classes) + 1.8), max(3.2, 0.5 * len(classes) + 1.2)))
    # Colours by share in any case, so that rare classes are seen as well as frequent ones.
    ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    for i, j in np.ndindex(counts.shape) if len(classes) <= _READABLE else ():
        text = f"{shares[i, j]:.2f}" if normalize else f"{counts[i, j]:.0f}"
        ax.text(
            j, i, text, ha="center", va="center", color="white" if shares[i, j] > 0.55 else "black", fontsize="small"
        )
    if len(classes) <= _READABLE:
        ax.set_xticks(range(len(classes)), classes, rotation=45 if len(classes) > 4 else 0, parse_math=False)
        ax.set_yticks(range(len(classes)), classes, parse_math=False)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    return ax


def learning_curve(
    sizes: ArrayLike,
    scores: ArrayLike | Mapping[str, ArrayLike],
    *,
    name: str = "score",
    log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Scores by the number of examples that were trained on. ``scores`` has a number for each size, or a row of
    numbers, such as those of the folds, which are drawn as their mean with a band of one standard deviation. A dict
    of them gives a curve for each name. ``log`` makes the axis of sizes logarithmic.

    >>> ax = learning_curve([10, 100], {"sst": [[0.5, 0.6], [0.7, 0.8]], "ptk": [0.6, 0.8]})
    >>> [line.get_label() for line in ax.lines]
    ['sst', 'ptk']
    """
    x = _numbers(sizes, "sizes")
    named = scores if isinstance(scores, Mapping) else {name: scores}
    curves = {str(label): _numbers(values, "scores") for label, values in named.items()}
    for values in curves.values():
        _same_length(sizes=x, scores=values)
    ax = _axes(ax, (5.2, 3.6))
    for i, (label, values) in enumerate(curves.items()):
        folds = values.reshape(len(x), -1)
        mean, spread = folds.mean(axis=1), folds.std(axis=1)
        colour = _COLOURS[i % len(_COLOURS)]
        marker = "osD^vP*"[i % 7]
        ax.plot(x, mean, color=colour, marker=marker, markersize=4, label=label)
        if folds.shape[1] > 1:
            ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
    if log:
        ax.set_xscale("log")
    ax.set_xlabel("training examples")
    ax.set_ylabel(name)
    ax.grid(alpha=0.3)
    if isinstance(scores, Mapping):
        _legend(ax)
    return ax


def gp(
    x: ArrayLike | None,
    mean: ArrayLike,
    variance: ArrayLike,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Predictions of a Gaussian process with bands of one and two standard deviations. ``x`` is where the examples
    stand; trees have no such place, and None puts them in the order of their means. ``y``, the true values, are dots.

    >>> ax = gp(None, [2.0, 1.0, 3.0], [0.1, 0.2, 0.4], y=[2.1, 1.2, 2.0])
    >>> ax.get_xlabel()
    'examples in the order of their predictions'
    """
    means, variances = _numbers(mean, "means"), _numbers(variance, "variances")
    if (variances < 0).any():
        raise ValueError(f"a variance is negative ({variances.min():g})")
    targets = None if y is None else _numbers(y, "true values")
    places = None if x is None else _numbers(x, "places on the x axis")
    _same_length(mean=means, variance=variances)
    for name, array in (("x", places), ("y", targets)):
        if array is not None:
            _same_length(**{"mean": means, name: array})
    order = np.argsort(means if places is None else places, kind="stable")
    at = np.arange(len(means)) if places is None else places[order]
    centre, sd = means[order], np.sqrt(variances[order])
    ax = _axes(ax, (5.6, 3.6))
    for width, alpha, label in ((2.0, 0.15, "two standard deviations"), (1.0, 0.25, "one standard deviation")):
        ax.fill_between(
            at, centre - width * sd, centre + width * sd, color=_COLOURS[0], alpha=alpha, linewidth=0, label=label
        )
    ax.plot(at, centre, color=_COLOURS[0], label="mean")
    if targets is not None:
        ax.plot(at, targets[order], linestyle="none", marker="o", markersize=3, color=_COLOURS[1], label="true value")
    ax.set_xlabel("x" if places is not None else "examples in the order of their predictions")
    ax.set_ylabel("value")
    _legend(ax, fontsize="small")
    return ax


def symbol_weights(weights: Any, *, top: int = 25, ax: Axes | None = None) -> Axes:
    """The largest of the weights that were learned for symbols, as bars: a dict of symbols and weights, or an estimator
    that has one as ``symbol_weights_``.

    >>> ax = symbol_weights({"NP": 0.9, "DT": 0.1, "VP": 0.5}, top=2)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['NP', 'VP']
    """
    table = getattr(weights, "symbol_weights_", weights)
    if not isinstance(table, Mapping):
        raise ValueError(f"weights must be a dict or an estimator with symbol_weights_, not {type(weights).__name__}")
    _numbers(list(table.values()), "weights")
    chosen = sorted(table.items(), key=lambda item: (-abs(item[1]), str(item[0])))[: max(top, 1)]
    names, values = [str(name) for name, _ in chosen], [float(value) for _, value in chosen]
    ax = _axes(ax, (4.8, max(1.6, 0.24 * len(names) + 0.8)))
    ax.barh(range(len(names)), values, color=[POSITIVE if value > 0 else NEGATIVE for value in values])
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.invert_yaxis()
    ax.axvline(0.0, color="black", linewidth=0.6)
    ax.set_xlabel("weight" if len(chosen) == len(table) else f"weight (the largest {len(chosen)} of {len(table)})")
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    return ax


def tree(tree: Any, contributions: Sequence[float] | Explanation | None = None, *, ax: Axes | None = None) -> Axes:
    """A tree: anything that :func:`espalier.tree` takes, or an :class:`espalier.Explanation`, whose tree is then shown.
    ``contributions`` has a number per node, parents before children as in :meth:`espalier.Tree.walk`, or is such an
    explanation; nodes with positive ones are orange, with negative ones blue, the larger the stronger. A very large
    tree shows its upper part.

    >>> ax = tree("(S (NP she) (VP sleeps))", contributions=[1.0, 0.5, 0.0, -0.5, 0.0])
    >>> [text.get_text() for text in ax.texts]
    ['S', 'NP', 'VP', 'she', 'sleeps']
    """
    if isinstance(tree, Explanation):
        tree, contributions = tree.tree, tree if contributions is None else contributions
        if tree is None:
            raise ValueError("the explanation has no tree: the kernel has no fragments of trees, or nodes was False")
    if isinstance(contributions, Explanation):
        contributions = contributions.shares
    layout = arrange(_as_tree(tree))
    shade = shades(layout.total, contributions) if contributions is not None else [0.0] * layout.total
    ax = _axes(ax, (min(max(2.0, 0.115 * layout.width), 40.0), min(max(1.5, 0.55 * layout.rows), 40.0)))
    from matplotlib.colors import to_rgba

    for node in layout.nodes:
        value = shade[node.number] if node.number >= 0 else 0.0
        colour = POSITIVE if value > 0 else NEGATIVE
        box = {
            "boxstyle": "round,pad=0.25",
            "linewidth": 0,
            "facecolor": to_rgba(colour, 0.1 + 0.6 * abs(value)) if value else "none",
        }
        if node.parent >= 0:
            above = layout.nodes[node.parent]
            ax.plot([above.x, node.x], [-above.y - 0.28, 0.3 - node.y], color="grey", linewidth=0.8, zorder=1)
        ax.text(node.x, -node.y, node.label, ha="center", va="center", fontsize=9, bbox=box, zorder=2, parse_math=False)
    ax.set_xlim(-1.0, layout.width + 1.0)
    ax.set_ylim(0.5 - layout.rows, 0.5)
    ax.set_axis_off()
    shown = sum(node.number >= 0 for node in layout.nodes)
    if shown < layout.total:
        ax.set_title(f"{shown:,} of {layout.total:,} nodes shown", fontsize=9, color="grey")
    return ax
