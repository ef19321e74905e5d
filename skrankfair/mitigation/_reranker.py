"""Re-rank the items of each query so that no group is too rare at the top."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, check_non_negative

from .._estimates import formatting as fmt
from .._inputs.by_name import TakesMetadata, numeric_features, take_columns
from .._inputs.groups import Groups, number_of
from .._inputs.ranking import Ranking
from .._inputs.sklearn_private import (
    fit_parameters,
    n_rows_of,
    routing_enabled,
    tags_of,
)
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_number,
    generator,
    unique_rows,
    warn_user,
)
from ..inference._prefix_test import FairCounts, fair_counts
from ..metrics._position_weights import DCG, PositionWeight
from ._by_group import (
    check_given_alike,
    columns_of_rows,
    quoted,
    score_names,
    warn_of_unseen,
)
from ._fair_exposure import CONSTRAINTS, amortized_order, drawn_order
from ._floors import (
    CountPlan,
    Plan,
    QueryLists,
    SharePlan,
    const_sort,
    fill,
    reassigned,
    shortage,
)
from ._wrapper import METHODS, check_features, for_model, router_of, scores_of

#: The methods that reach counts, and those that share exposure or attention.
_COUNTING = ("det_greedy", "det_cons", "det_relaxed", "det_const_sort", "fa_ir")
_SHARING = ("exposure_lp", "amortized")


class FairReranker(TransformerMixin, TakesMetadata):
    """Re-rank the items of each query so that every group gets its share of the top.

    Scores come in and scores go out: the new scores of a query are its old ones, handed
    to other items so that sorting by them gives the new order. X holds the column of
    scores (several columns are each re-ranked on their own); columns of X named by
    `sensitive_features` or `qid` are taken out of it first. Around an `estimator` it is
    a model, whose predictions are the re-ranked scores of that estimator.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A ranker, regressor or classifier whose scores are re-ranked: the decision
        function of a classifier, or where scores stand for relevance its probability of
        the second class, if it has both. None: X holds the scores.
    method : {"det_greedy", "det_cons", "det_relaxed", "det_const_sort", "fa_ir", \
            "exposure_lp", "amortized"}, default="det_greedy"
        How places are filled from the top. The first four keep the count of every group
        in the first j places at or above ``⌊p j⌋``, where p is its target share (Geyik
        et al. 2019). "det_greedy" otherwise takes the best item of the groups that are
        below ``⌈p j⌉``; "det_cons" and "det_relaxed" take the best item of that one of
        these groups which has the least ``⌈p j⌉ / p`` or ``⌈⌈p j⌉ / p⌉``, the place by
        which it must have its next item; this leaves fewer dead ends for four and more
        groups; "det_const_sort" reaches all floors for any number of groups. "fa_ir"
        (Zehlike et al. 2017, 2022) takes the best item unless the count of protected
        items would fail a test of chance, at any prefix. "exposure_lp" (Singh and
        Joachims 2018) draws each ranking from the most useful mixture of rankings whose
        expected exposure is fair. "amortized" (Biega et al. 2018) keeps the sums of
        attention over a sequence of queries near those of relevance. The last two take
        scores for relevance, and need neither `target` nor the groups of the fit.
    target : {"proportional", "candidates", "equal"} or mapping, \
            default="proportional"
        The target share of each group. "proportional": its share of the rows of the
        fit. "candidates": its share of the candidates of each query; "fa_ir" then
        draws them without replacement, since the pool is finite (hypergeometric
        counts, in place of binomial or multinomial ones). "equal": one over the number
        of groups. A mapping gives shares by label; the groups that it leaves out share
        the rest in proportion to their rows.
    k : int or None, default=None
        How many positions count, from the top. Items after them stay in the order of
        their scores. None counts all.
    alpha : float, default=0.1
        For "fa_ir": the probability, in (0, 0.5), that a list in which nobody is
        disadvantaged is changed, over all prefixes of `k` places together, or of all
        places of the list.
    group : label, list of labels or None, default=None
        For "fa_ir": the groups that must not be too rare. At least one group is left
        out; None leaves out the one with most rows in the fit.
    constraint : {"parity", "treatment", "impact"}, default="parity"
        For "exposure_lp": what is fair in each query. "parity": equal mean exposure of
        the groups. "treatment": exposure in proportion to relevance. "impact": clicks,
        which are relevance times exposure, in proportion to relevance.
    quality : float, default=0.9
        For "amortized": the least NDCG of each new ranking, with the scores for
        relevance. 0 asks for fairness only, and is fast; the nearer to 1, the more
        often an integer program of (candidates x places) unknowns must be solved.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable \
            or array-like, default="dcg"
        What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
        ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
        function that takes the array of ranks and returns their weights, or an array
        of the weights of the first ranks, which zeros follow. It is the exposure of
        "exposure_lp" and the attention of "amortized", with a patience of 0.8, and 0
        after rank `k`.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. Only "exposure_lp" draws.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not.
    qid : str, callable, True or None, default=None
        Where the queries come from, in the same way; all rows are one query if there
        are none.
    drop_metadata_columns : bool, default=False
        Whether the columns that the constructor names are hidden from the model, which
        otherwise gets all columns of X.

    Attributes
    ----------
    shares_ : dict
        The target share of each group; empty for ``target="candidates"``.
    groups_ : tuple
        The labels seen in `fit`.
    protected_ : tuple
        The protected groups of "fa_ir".
    estimator_ : estimator or None
        The fitted model, if there is one.
    alpha_, failure_probability_ : float
        Of "fa_ir" with `k` and without ``target="candidates"``, else NaN: the
        significance of the test of one prefix, at most `alpha`, and the probability
        that a fair list fails at some prefix, which is the nearest to `alpha` that such
        a significance gives. It is 0, and no list is changed, where `k` places without
        a protected item are more likely than `alpha`.
    attention_, relevance_ : dict
        Of "amortized": the sums so far by label, a list with one number per column of
        scores; empty after `fit`. `partial_fit` adds to them, and `transform` starts
        from them. Labels of text make them JSON.
    n_features_in_ : int
        Number of columns of X, those of group and query included.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    See Also
    --------
    skrankfair.inference.prefix_test : The test whose failures "fa_ir" prevents.
    GroupCalibrator : The better cure where scores mean different things in two groups.

    Notes
    -----
    The model, `target` and `group` are those of `fit`. The other options may be set
    after it, as they only say how `transform` fills the places.

    Within a group the order of the items never changes, except by "amortized", or by
    "exposure_lp" for "impact". Equal scores are taken in the
    order of the rows; where the new order needs it, the lower of two equal scores
    becomes smaller by its last bit, so pass scores on in double precision.

    Rows of groups that `fit` has not seen have no target: they keep their scores, and
    the other rows are re-ranked among themselves. ``p j`` counts as an integer if it is
    within 1e-9 of one. Where the candidates do not suffice, the best item is taken,
    and a warning says how many queries fall short and by how many items.

    For several protected groups "fa_ir" requires ``P(X_1 <= c_1, X_2 <= c_2, ...) >
    alpha_`` of the counts at each prefix, where X is multinomial, or multivariate
    hypergeometric. Of the groups that keep the test passed, the best item is taken.

    A mixture of rankings is a doubly stochastic matrix P, the chance of item i at place
    k, and the utility uᵀPv is linear in it, for relevance u and weights v. The optimum
    mixes at most as many rankings as the query has groups (its Birkhoff-von Neumann
    decomposition), and is exact. Only exposure in proportion to relevance can be out of
    reach, where a group has nearly all of it; its shares then move towards those of
    the candidates as far as is needed, with a warning.

    "amortized" books shares that sum to 1 per query: ``a = v / Σ v`` and
    ``r = u / Σ u``. It takes queries in the order of their first rows, and for each the
    ranking with the least ``Σ_i |A_i + a_i - (R_i + r_i)|``, if each label has one item
    in it, such as the identifier of the item. What the label of several items is due,
    ``R + Σ r - A``, is shared equally by these items, so that the sum is an upper bound
    of that over labels.

    References
    ----------
    Biega, A. J., Gummadi, K. P., Weikum, G. (2018). "Equity of Attention: Amortizing
    Individual Fairness in Rankings". SIGIR '18, §3.

    Geyik, S. C., Ambler, S., Kenthapadi, K. (2019). "Fairness-Aware Ranking in Search &
    Recommendation Systems with Application to LinkedIn Talent Search". KDD '19,
    algorithms 1 to 3.

    Singh, A., Joachims, T. (2018). "Fairness of Exposure in Rankings". KDD '18, §3-4.

    Zehlike, M., Bonchi, F., Castillo, C., Hajian, S., Megahed, M., Baeza-Yates, R.
    (2017). "FA*IR: A Fair Top-k Ranking Algorithm". CIKM, §4.

    Zehlike, M., Sühr, T., Baeza-Yates, R., Bonchi, F., Castillo, C., Hajian, S. (2022).
    "Fair Top-k Ranking with multiple protected groups". Information Processing &
    Management 59(1), §4.

    Examples
    --------
    >>> import pandas as pd
    >>> from skrankfair.mitigation import FairReranker
    >>> X = pd.DataFrame({"score": [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]})
    >>> X["gender"] = ["m", "m", "m", "m", "f", "f"]
    >>> fair = FairReranker(target="equal", k=4, sensitive_features="gender")
    >>> fair.fit_transform(X).ravel()
    array([9., 7., 5., 4., 8., 6.])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "det_greedy",
        target: Any = "proportional",
        k: int | None = None,
        alpha: float = 0.1,
        group: Any = None,
        constraint: str = "parity",
        quality: float = 0.9,
        position_weight: Any = "dcg",
        random_state: int | np.random.Generator | None = None,
        sensitive_features: Any = None,
        qid: Any = None,
        drop_metadata_columns: bool = False,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.target = target
        self.k = k
        self.alpha = alpha
        self.group = group
        self.constraint = constraint
        self.quality = quality
        self.position_weight = position_weight
        self.random_state = random_state
        self.sensitive_features = sensitive_features
        self.qid = qid
        self.drop_metadata_columns = drop_metadata_columns

    def get_metadata_routing(self) -> Any:
        """Return the metadata that this estimator and the wrapped one request.

        Returns
        -------
        MetadataRequest or MetadataRouter
        """
        request = super().get_metadata_routing()
        if self.estimator is None:
            return request
        return router_of(self, request, ("predict", "transform"))

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        qid: Any = None,
    ) -> Self:
        """Learn the target shares of the groups, and fit the estimator if there is one.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            Scores, or what the estimator takes, with the columns of group and query
            that the constructor names.
        y : array-like of shape (n_samples,) or None, default=None
            Relevance, which only the estimator needs.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.

        Returns
        -------
        FairReranker

        Raises
        ------
        ValueError
            If an option is unknown, if groups overlap, if targets are no shares of
            groups of the fit, or if a column is given twice, is missing or has another
            length.
        """
        _, groups, _, given = self._read(
            X, sensitive_features, qid, y=y, sample_weight=sample_weight
        )
        rows = np.bincount(groups.values, given.get("sample_weight"), len(groups))
        counts = {g: n for g, n in zip(groups.labels, rows.tolist(), strict=True) if n}
        if (model := self.estimator) is not None:
            if routing_enabled():  # It raises for what nobody requests.
                process_routing(self, "fit", **given)
            parameters = fit_parameters(model, given)
            model = clone(model).fit(for_model(self, X), y, **parameters)
        self.estimator_ = model
        self._grouped = "sensitive_features" in given
        self.shares_ = self._target_shares(counts)
        self.protected_ = self._protected(counts)
        self.attention_: dict[Hashable, list[float]] = {}
        self.relevance_: dict[Hashable, list[float]] = {}
        self.alpha_ = self.failure_probability_ = np.nan
        if self.method == "fa_ir" and self.k and self.shares_ and self.protected_:
            law = self._fair_counts((self.k,))
            self.alpha_ = float(law.alpha[0])
            self.failure_probability_ = float(law.failure_probability[0])
        self.groups_ = tuple(counts)
        return self

    def transform(self, X: Any, sensitive_features: Any = None, qid: Any = None) -> Any:
        """Return scores that sort to the new order of each query.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_scores)
            One column for each column of scores; one with an estimator.

        Raises
        ------
        ValueError
            If groups are given here but not to `fit`, or the other way round.

        Warns
        -----
        UserWarning
            It names the groups that `fit` has not seen, whose items keep their scores,
            or says in how many queries the targets are not met, and by how much.
        """
        return self._reranked(X, sensitive_features, qid)[0]

    @available_if(lambda self: self.method == "amortized")
    def partial_fit(
        self, X: Any, y: Any = None, sensitive_features: Any = None, qid: Any = None
    ) -> Self:
        """Re-rank more queries, and book their attention and relevance.

        Only ``method="amortized"`` has it. Serve `transform` of the rows, then pass the
        same rows to this method; the next `transform` starts from their sums.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or None, default=None
            Relevance, which only the fit of an estimator needs.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.

        Returns
        -------
        FairReranker
            It is fitted to these rows first, if it has not been fitted.
        """
        if not hasattr(self, "groups_"):
            self.fit(X, y, sensitive_features=sensitive_features, qid=qid)
        _, labels, books = self._reranked(X, sensitive_features, qid)
        attention, relevance = books.tolist()
        self.attention_ = self.attention_ | dict(zip(labels, attention, strict=True))
        self.relevance_ = self.relevance_ | dict(zip(labels, relevance, strict=True))
        return self

    def predict(self, X: Any, sensitive_features: Any = None, qid: Any = None) -> Array:
        """Return the scores of `transform`, as one number per row.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_scores)
            Of two dimensions if X has several columns of scores.
        """
        scores = self._reranked(X, sensitive_features, qid)[0]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        qid: Any = None,
    ) -> Any:
        """Fit, and return new scores of the rows of the fit.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or None, default=None
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        qid : array-like of shape (n_samples,) or None, default=None
            Query of each row, if the constructor names no column of X.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_scores)
        """
        self.fit(X, y, sample_weight, sensitive_features, qid)
        return self.transform(X, sensitive_features, qid)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, if it had none.

        Returns
        -------
        ndarray of str
            The names of the scores; "score" with an estimator.
        """
        if getattr(self, "estimator_", None) is not None:
            return np.array(["score"], dtype=object)
        return score_names(self, input_features)

    def _check_options(self) -> None:
        check_choice(self.method, "method", (*_COUNTING, *_SHARING))
        if not isinstance(self.target, Mapping):
            check_choice(self.target, "target", ("proportional", "candidates", "equal"))
        check_number(self.k, "k", 1, np.inf, integer=True, optional=True)
        check_number(self.alpha, "alpha", 0, 0.5, inclusive=(False, False))
        check_choice(self.drop_metadata_columns, "drop_metadata_columns", (False, True))
        check_choice(self.constraint, "constraint", CONSTRAINTS)
        check_number(self.quality, "quality", 0, 1)
        PositionWeight.of_first(self.position_weight, self.k).up_to(1)
        generator(self.random_state)

    @property
    def _takes_relevance(self) -> bool:
        """Whether scores are relevance, which is not negative."""
        by_merit = self.method == "exposure_lp" and self.constraint != "parity"
        return self.method == "amortized" or by_merit

    def _read(
        self, X: Any, sensitive_features: Any, qid: Any, **of_fit: Any
    ) -> tuple[Any, Groups, Array, dict[str, Any]]:
        """Return scores, (n, d), groups and queries of all rows, and what is given.

        `of_fit` are `y` and `sample_weight`, for a fit, in which an estimator has no
        scores yet: they are None.
        """
        self._check_options()
        passed = {"sensitive_features": sensitive_features, "qid": qid}
        given = take_columns(self, X, passed, **of_fit)
        scores, is_fit = None, bool(of_fit)
        model = self.estimator if is_fit else self.estimator_
        if model is None:
            scores = numeric_features(self, X, "scores", reset=is_fit)
        else:
            check_features(self, X, of_fit.get("y", "no_validation"), reset=is_fit)
        columns = columns_of_rows(n_rows_of(X), of_fit.get("sample_weight"), **given)
        groups, codes, given["sample_weight"] = columns
        given = {name: values for name, values in given.items() if values is not None}
        if not is_fit:
            check_given_alike(given.get("sensitive_features"), self._grouped)
            if scores is None:
                # Scores for relevance are not below 0.
                methods = METHODS[::-1] if self._takes_relevance else METHODS
                scores = scores_of(model, for_model(self, X), given, methods)[:, None]
        if scores is not None and self._takes_relevance:
            whom = f"FairReranker, whose method={self.method!r} takes scores"
            check_non_negative(scores, f"{whom} for relevance")
        query = np.zeros(groups.n_rows, dtype=int) if codes is None else codes.codes
        return scores, groups, query, given

    def _target_shares(self, counts: Mapping[Hashable, float]) -> dict[Hashable, float]:
        """Return the target share of each group, given their numbers of rows."""
        if self.target == "candidates":
            return {}
        given = dict.fromkeys(counts, 1 / len(counts)) if self.target == "equal" else {}
        if isinstance(self.target, Mapping):
            numbers = as_numbers([0.0, *self.target.values()], "target")[1:]
            given = dict(zip(self.target, numbers.tolist(), strict=True))
        if unknown := [label for label in given if label not in counts]:
            raise ValueError(
                f"target must have labels of groups of the fit, {quoted(list(counts))};"
                f" got {quoted(unknown)}."
            )
        total = sum(given.values())
        others = {label: n for label, n in counts.items() if label not in given}
        least = 0.0 if others else 1 - 1e-9
        if min(given.values(), default=0) < 0 or not least <= total <= 1 + 1e-9:
            raise ValueError(
                "target must have shares that are not negative and add up to 1, or to "
                f"less if it leaves a group out; got {given!r}, which add up to "
                f"{total:g}."
            )
        each = max(0.0, 1 - total) / (sum(others.values()) or 1)
        return {label: given.get(label, each * n) for label, n in counts.items()}

    def _protected(self, counts: Mapping[Hashable, float]) -> tuple[Hashable, ...]:
        """Return the groups that must not be too rare, in the order of labels."""
        if self.group is None:
            largest = max(counts, key=lambda label: counts[label])
            return tuple(label for label in counts if label != largest)
        labels = self.group if isinstance(self.group, list) else [self.group]
        known = list(counts)
        protected = {number_of(label, known, "group") for label in labels}
        if not 0 < len(protected) < len(known):
            raise ValueError(
                "group must be some of the groups of the fit, "
                f"{quoted(known)}, and not all; got {self.group!r}."
            )
        return tuple(known[g] for g in sorted(protected))

    def _fair_counts(self, lengths: tuple[int, ...]) -> FairCounts:
        """Return the counts of protected groups that pass, by length of the list."""
        shares = tuple(self.shares_[label] for label in self.protected_)
        return fair_counts(lengths, shares, self.alpha)

    def _reranked(
        self, X: Any, sensitive_features: Any, qid: Any
    ) -> tuple[Array, tuple[Hashable, ...], Array]:
        """Return new scores, (n, d), labels, and the sums of "amortized", (2, G, d)."""
        check_is_fitted(self, "groups_")
        scores, groups, query, _ = self._read(X, sensitive_features, qid)
        groups = groups.without_unused()
        labels = groups.labels if self.method in _SHARING else self.groups_
        warn_of_unseen(groups, labels, "have no target share and keep their scores")
        books = np.zeros((2, len(labels), scores.shape[1]))
        if self.method == "amortized":
            for g, label in enumerate(labels):
                books[0, g] = self.attention_.get(label, 0.0)
                books[1, g] = self.relevance_.get(label, 0.0)
            # Queries in the order of their first rows.
            first = np.unique(query, return_index=True)[1]
            query = np.argsort(np.argsort(first))[query]
        number = {label: g for g, label in enumerate(labels)}
        group = np.array([number.get(label, -1) for label in groups.labels])
        group = group[groups.values]
        rows, out = np.flatnonzero(group >= 0), scores.copy()
        lacking = []
        for column in range(scores.shape[1] if rows.size else 0):
            ranking = Ranking.from_scores(scores[rows, column], query[rows])
            order = rows[ranking.order[ranking.ties_in_row_order()]]
            columns = ranking.score, group[order], len(labels)
            lists = QueryLists(ranking.starts, ranking.tie_starts, *columns)
            longest = int(lists.lengths.max())
            k = longest if self.k is None else min(self.k, longest)
            if self.method in _SHARING:
                placed = self._shared(lists, k, books[:, :, column])
            else:
                plan: Any = self._plan(lists, k)
                sorts = self.method == "det_const_sort"
                placed = (const_sort if sorts else fill)(lists, k, plan)
                lacking.append(shortage(lists, placed, k, plan))
            out[order[placed], column] = reassigned(lists, placed)
        if lacking:
            _warn_of_shortage(np.max(lacking, axis=0), labels)
        return out, labels, books

    def _shared(self, lists: QueryLists, k: int, books: Array) -> Array:
        """Return the rows in an order that shares exposure, or attention by books."""
        model = PositionWeight.of_first(self.position_weight, self.k)
        weights, discounts = (of.up_to(lists.lengths.max()) for of in (model, DCG))
        weights[k:] = discounts[k:] = 0.0
        if self.method == "amortized":
            return amortized_order(lists, weights, discounts, self.quality, books)
        rng = generator(self.random_state)
        return drawn_order(lists, weights, self.constraint, rng)

    def _plan(self, lists: QueryLists, k: int) -> Plan:
        """Return the rule of the groups that may have a place, for `_COUNTING`."""
        finite = not self.shares_
        if self.method != "fa_ir" or not self.protected_:
            share = np.array([list(self.shares_.values())])
            if finite:
                share = lists.sizes / lists.lengths[:, None]
            return SharePlan(share, self.method)
        protected = np.array([self.groups_.index(g) for g in self.protected_])
        if finite:
            pools = np.column_stack([lists.sizes[:, protected], lists.lengths])
            kinds, pool = unique_rows(pools)
            sizes, size = kinds[:, :-1], kinds[:, -1]
            counts = FairCounts.of(np.minimum(size, k), sizes, size, self.alpha)
        else:
            n_places = lists.lengths if self.k is None else np.array([self.k])
            lengths, pool = np.unique(n_places, return_inverse=True)
            counts = self._fair_counts(tuple(lengths.tolist()))
        return CountPlan(counts, protected, pool)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = tags_of(self.estimator).input_tags
            tags.target_tags.required = not isinstance(self.estimator, FrozenEstimator)
        elif self._takes_relevance:
            tags.input_tags.positive_only = True
        return tags


def _warn_of_shortage(missing: Array, labels: tuple[Hashable, ...]) -> None:
    """Warn of items that groups lack in some prefix, shape (Q, G), if there are any."""
    if short := np.count_nonzero(missing.any(axis=1)):
        names = ", ".join(
            f"{fmt.label(label)} by up to {most:,.0f}"
            for label, most in zip(labels, missing.max(axis=0), strict=True)
            if most
        )
        warn_user(
            f"Targets are not met at every place in {short:,} of {len(missing):,} "
            f"queries, where too few items of a group are at the top: {names}. "
            "Either their candidates do not suffice, or the method met a dead end.",
            UserWarning,
        )
