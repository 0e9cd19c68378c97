"""What scikit-learn is told about our estimators, in the words of its versions before and after 1.6."""

from __future__ import annotations

from typing import Any


class ExampleTags:
    """Examples are no rows of a matrix and are checked by the library. ``_is_pairwise`` says whether X is a Gram
    matrix."""

    def _is_pairwise(self) -> bool:
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = self._is_pairwise()
        tags.input_tags.string = not self._is_pairwise()
        tags.input_tags.pairwise = self._is_pairwise()
        tags.input_tags.sparse = not self._is_pairwise()
        tags.no_validation = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        pairwise = self._is_pairwise()
        types = ["2darray"] if pairwise else ["string", "sparse"]
        return {"pairwise": pairwise, "X_types": types, "no_validation": True}
