"""Groups and queries that a mitigation needs in fit only, and features without them."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from .._columns import ColumnSpec, check_spec, column_of, is_column

NAMES = ("sensitive_features", "qid")


class NeedsGroupsInFit:
    """An estimator with the parameters `sensitive_features` and `qid`."""

    def get_metadata_routing(self) -> Any:
        """Return what metadata `fit` requests.

        What the constructor says is metadata (True) is requested without a call of
        `set_fit_request`.

        Returns
        -------
        MetadataRequest
        """
        request = super().get_metadata_routing()  # type: ignore[misc]
        for name in NAMES:
            if getattr(self, name) is True and request.fit.requests[name] is None:
                request.fit.add_request(param=name, alias=True)
        return request

    def _features(self, X: Any) -> Any:
        """Return X without the columns that the constructor names, if it has them."""
        names: list[str] = []
        for spec in (getattr(self, name) for name in NAMES):
            if is_column(spec) and not callable(spec):
                names += [spec] if isinstance(spec, str) else spec
        if not names:
            return X
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return X
        return frame.drop([name for name in names if name in frame.columns]).to_native()


def of_fit(X: Any, spec: ColumnSpec, given: Any, name: str) -> Any:
    """Return the column that the constructor names, else what `fit` was given.

    Raises
    ------
    ValueError
        If it is given twice, or missing although the constructor says it is passed.
    """
    check_spec(spec, name)
    if is_column(spec):
        if given is not None:
            raise ValueError(
                f"{name} must be given once; the constructor has {name}={spec!r}."
            )
        return column_of(X, spec, name)
    if spec is True and given is None:
        raise ValueError(
            f"{name} must be passed to fit, as {name}=True of the constructor says; "
            "got None. Inside other estimators turn on "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
    return given
