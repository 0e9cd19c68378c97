"""Trees of other libraries inside pipelines."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin

from ._tags import ExampleTags
from ._trees import Tree, tree
from ._values import list_of


class TreeTransformer(ExampleTags, TransformerMixin, BaseEstimator):
    """Makes :class:`espalier.Tree` objects of whatever holds trees, with choices that a grid can search.

    Kernels take most kinds as they are; this is for those that need ``kind`` or a policy. Parameters are those of
    :func:`espalier.tree`; None leaves the choice to it, and what the kind does not have is a ``TypeError``.

    >>> from sklearn.pipeline import make_pipeline
    >>> from espalier import SVC, TreeTransformer
    >>> model = make_pipeline(TreeTransformer(kind="ast", names="abstract"), SVC(kernel="norm(ptk)"))
    >>> model.fit(["a = b + 1", "c = d + 2", "f(x)", "g(y)"], [0, 0, 1, 1]).predict(["u = v + 3"])
    array([0])
    """

    def __init__(
        self,
        *,
        kind: str | None = None,
        names: str | None = None,
        constants: str | None = None,
        fields: bool | None = None,
        attributes: str | None = None,
        text: str | None = None,
        namespaces: bool | None = None,
        values: str | None = None,
        sort: bool | None = None,
        named: bool | None = None,
        policy: str | None = None,
        word: str | None = None,
        tag: str | None = None,
        relation: str | None = None,
        label: str | None = None,
        children: str | None = None,
    ) -> None:
        self.kind = kind
        self.names = names
        self.constants = constants
        self.fields = fields
        self.attributes = attributes
        self.text = text
        self.namespaces = namespaces
        self.values = values
        self.sort = sort
        self.named = named
        self.policy = policy
        self.word = word
        self.tag = tag
        self.relation = relation
        self.label = label
        self.children = children

    def fit(self, X: Any, y: Any = None) -> TreeTransformer:
        """Learns nothing."""
        return self

    def transform(self, X: Any) -> list[Tree]:
        """The tree of each object."""
        options = {name: value for name, value in self.get_params().items() if value is not None}
        trees = []
        for at, obj in enumerate(X if isinstance(X, (list, tuple)) else list_of(X)):
            try:
                trees.append(tree(obj, **options))
            except ValueError as error:
                raise ValueError(f"X[{at}]: {error}") from None
        return trees

    def __sklearn_is_fitted__(self) -> bool:
        return True
