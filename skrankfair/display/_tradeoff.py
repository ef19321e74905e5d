"""`FairnessTradeoffDisplay`: the candidates of a search by objective and disparity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates.formatting import label
from .._inputs.validation import Array, check_number
from ..model_selection import (
    FairnessConstrained,
    check_negated,
    pareto_front,
    search_error,
    search_scores,
)
from . import _style as draw

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_FAINT = "#C8C8C8"
_LONGEST_LABEL = 60
_SIZES = {2: 5, 4: 6.5, 5: 9}  # sizes of points by their z-order: larger ones in front


@dataclass(eq=False, repr=False)
class FairnessTradeoffDisplay:
    """A scatter plot of a search: objective against disparity, one point per candidate.

    Made by `from_search` or `from_cv_results`. The candidates that no other beats are
    joined to a front, which shows what the search has to offer at each disparity. The
    chosen one stands out, and a bound is a line, with the region that it excludes
    shaded.

    Parameters
    ----------
    objective : array-like of shape (n_candidates,)
        Larger is better; NaN for a candidate without a value.
    disparity : array-like of shape (n_candidates,)
        Smaller is fairer, or larger with `larger_is_fairer`.
    objective_error, disparity_error : array-like of shape (n_candidates,) or None, \
            default=None
        Standard errors: half the length of the bars. None draws none.
    on_front : array-like of shape (n_candidates,), bool, or None, default=None
        Which candidates no other beats; None draws no front.
    chosen : int or None, default=None
        The candidate that was chosen.
    bound : float or None, default=None
        The bound on the disparity.
    larger_is_fairer : bool, default=False
        Whether the disparity is a ratio, and the bound its least allowed value.
    objective_name, disparity_name : str, default="objective", "disparity"
        Labels of the axes.
    chosen_name : str, default=""
        What the chosen candidate is, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    candidates_ : matplotlib Line2D
        The candidates that are beaten by another.
    front_ : matplotlib Line2D or None
        The steps of the front.
    front_points_ : matplotlib Line2D or None
    chosen_ : matplotlib Line2D or None
    errors_ : list of matplotlib LineCollection
        Error bars of the candidates that are beaten, of the front, and of the chosen.
    bound_ : matplotlib Line2D or None
    forbidden_ : matplotlib Rectangle or None
        The region beyond the bound.
    missing_ : matplotlib Text or None
        How many candidates have no value, if any: the title of the legend or, without
        one, of the axes.
    legend_ : matplotlib Legend or None

    See Also
    --------
    skrankfair.model_selection.fairness_constrained : Chooses under a bound.
    skrankfair.model_selection.pareto_front : The candidates that no other beats.

    Examples
    --------
    >>> from skrankfair.display import FairnessTradeoffDisplay
    >>> display = FairnessTradeoffDisplay.from_cv_results(
    ...     {
    ...         "params": [{"C": 0.1}, {"C": 1}, {"C": 10}],
    ...         "mean_test_ndcg": [0.7, 0.8, 0.9],
    ...         "mean_test_gap": [-0.1, -0.3, -0.2],
    ...     },
    ...     objective="ndcg",
    ...     disparity="gap",
    ...     chosen=0,
    ...     bound=0.15,
    ... )
    >>> display.on_front
    array([ True, False,  True])
    """

    objective: Any
    disparity: Any
    _: KW_ONLY
    objective_error: Any = None
    disparity_error: Any = None
    on_front: Any = None
    chosen: int | None = None
    bound: float | None = None
    larger_is_fairer: bool = False
    objective_name: str = "objective"
    disparity_name: str = "disparity"
    chosen_name: str = ""

    @classmethod
    def from_search(
        cls,
        search: Any,
        *,
        objective: str | None = None,
        disparity: str | None = None,
        larger_is_fairer: bool | None = None,
        bound: float | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> FairnessTradeoffDisplay:
        """Draw a fitted search, by default as `fairness_constrained` has seen it.

        Parameters
        ----------
        search : GridSearchCV or another search
            Fitted, with the objective and the disparity in ``scoring=``.
        objective, disparity : str or None, default=None
            Keys of ``scoring``. None takes those of `fairness_constrained`, and the
            first constraint if there are several.
        larger_is_fairer : bool or None, default=None
            Whether the disparity is a ratio, or another score that is to be large, and
            no negated disparity. None takes what the constraint says, and False without
            one.
        bound : float or None, default=None
            None takes that of the constraint.
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        FairnessTradeoffDisplay

        Raises
        ------
        ValueError
            For a search that is not fitted, or one without `fairness_constrained` if
            `objective` or `disparity` is None.
        """
        if not hasattr(search, "cv_results_"):
            raise ValueError(
                f"search must be fitted: this {type(search).__name__} has no "
                "cv_results_."
            )
        refit = search.refit
        if isinstance(refit, FairnessConstrained):
            bounds = {**refit.at_most, **refit.at_least}
            objective = refit.objective if objective is None else objective
            disparity = next(iter(bounds)) if disparity is None else disparity
            bound = bounds.get(disparity) if bound is None else bound
            if larger_is_fairer is None:
                larger_is_fairer = disparity in refit.at_least
        if objective is None or disparity is None:
            raise ValueError(
                "objective and disparity must be given for a search without "
                f"refit=fairness_constrained(...); its refit is {refit!r}."
            )
        return cls.from_cv_results(
            search.cv_results_,
            objective=objective,
            disparity=disparity,
            larger_is_fairer=bool(larger_is_fairer),
            chosen=getattr(search, "best_index_", None),
            bound=bound,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        objective: str,
        disparity: str,
        larger_is_fairer: bool = False,
        chosen: int | None = None,
        bound: float | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> FairnessTradeoffDisplay:
        """Draw the results of a search.

        Parameters
        ----------
        cv_results : dict
            The ``cv_results_`` of a search.
        objective, disparity : str
            Keys of ``scoring``. The scorer of a disparity negates it; it is drawn
            positive.
        larger_is_fairer : bool, default=False
            Whether the disparity is a ratio, or another score that is to be large, and
            no negated disparity.
        chosen : int or None, default=None
            Index of the chosen candidate.
        bound : float or None, default=None
            The bound on the disparity: its largest allowed value, or its smallest with
            `larger_is_fairer`.
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        FairnessTradeoffDisplay

        Raises
        ------
        ValueError
            For an unknown key, or scores above 0 without `larger_is_fairer`.

        Notes
        -----
        A bar is one standard error to each side: of scores `with_errors` that of all
        folds together, as in ``table_`` of the rule; else that of the mean over the
        folds, their sample standard deviation over the root of their number. Folds
        share training rows, so it is only a rough guide.
        """
        front = pareto_front(cv_results, [objective, disparity])
        worth, worth_error = _scores(cv_results, objective)
        scores, error = _scores(cv_results, disparity)
        if not larger_is_fairer:
            check_negated(disparity, scores)
        name = ""
        if chosen is not None:
            check_number(chosen, "chosen", 0, worth.size - 1, integer=True)
            settings = cv_results["params"][chosen].items()
            name = ", ".join(f"{k.rpartition('__')[2]}={v}" for k, v in settings)
        display = cls(
            worth,
            scores if larger_is_fairer else 0.0 - scores,
            objective_error=worth_error,
            disparity_error=error,
            on_front=front,
            chosen=chosen,
            bound=bound,
            larger_is_fairer=larger_is_fairer,
            objective_name=objective,
            disparity_name=disparity,
            chosen_name=name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, legend: bool = True
    ) -> FairnessTradeoffDisplay:
        """Draw the candidates.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        legend : bool, default=True
            False draws none.

        Returns
        -------
        FairnessTradeoffDisplay
            This display, with the artists.

        Raises
        ------
        ValueError
            For arrays of different lengths, or a choice that is not among them.
        """
        x = np.asarray(self.disparity, dtype=float)
        y = np.asarray(self.objective, dtype=float)
        if x.shape != y.shape or x.ndim != 1:
            raise ValueError(
                "objective and disparity must be 1-dimensional and of one length; got "
                f"shapes {y.shape} and {x.shape}."
            )
        check_number(self.chosen, "chosen", 0, x.size - 1, integer=True, optional=True)
        ax = self.ax_ = draw.axes_for(ax)
        self.figure_ = ax.figure
        fairer = "fairer →" if self.larger_is_fairer else "← fairer"
        draw.frame(
            ax,
            f"{label(self.disparity_name, _LONGEST_LABEL)}   ({fairer})",
            f"{label(self.objective_name, _LONGEST_LABEL)}   (better →)",
            grid=None,
        )
        defined = ~(np.isnan(x) | np.isnan(y))
        on_front = False if self.on_front is None else self.on_front
        front = np.asarray(on_front, dtype=bool) & defined
        chosen = defined & (np.arange(x.size) == self.chosen)
        self._draw_candidates(x, y, defined & ~front & ~chosen, front, chosen)
        # Drawn after the points, which determine the limits of the axes.
        self._draw_bound()
        drawn = self.chosen_, self.front_points_, self.candidates_, self.bound_
        handles = [
            line for line in drawn if line is not None and np.size(line.get_xdata())
        ]
        undefined = int((~defined).sum())
        words = f"{undefined} undefined, not shown" if undefined else ""
        self.legend_, title = draw.entitled(ax, handles, legend, words)
        self.missing_ = title if words else None
        return self

    def _draw_candidates(
        self, x: Array, y: Array, beaten: Array, front: Array, chosen: Array
    ) -> None:
        """Draw beaten candidates faintly, then the front, then the chosen on top."""
        self.errors_: list[Artist] = []
        self.front_ = self.front_points_ = self.chosen_ = None
        self.candidates_ = self._draw_points(
            x, y, beaten, 2, "candidate", color=draw.UNCLEAR, ecolor=_FAINT
        )
        if front.any():
            order = np.flatnonzero(front)[np.argsort(x[front], kind="stable")]
            (self.front_,) = self.ax_.plot(
                x[order],
                y[order],
                drawstyle=f"steps-{'pre' if self.larger_is_fairer else 'post'}",
                color=draw.LINE,
                linewidth=draw.thick(1.4),
                zorder=3,
            )
            self.front_points_ = self._draw_points(
                x, y, front & ~chosen, 4, "beaten by no other", color=draw.LINE
            )
        if chosen.any():
            name = "chosen"
            if self.chosen_name:
                name += f": {label(self.chosen_name, _LONGEST_LABEL)}"
            self.chosen_ = self._draw_points(
                x, y, chosen, 5, name, color=draw.BETTER, fmt="D"
            )

    def _draw_points(
        self, x: Array, y: Array, some: Array, zorder: int, name: str, **options: Any
    ) -> Line2D:
        """Draw some points, larger on top, and the bars of their standard errors."""
        across, along = (
            None if error is None else np.nan_to_num(np.asarray(error, float))[some]
            for error in (self.disparity_error, self.objective_error)
        )
        look: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8}
        look |= {"fmt": "o", "elinewidth": draw.thick(0.8 if zorder == 2 else 1.2)}
        look |= {"markersize": draw.dot(_SIZES[zorder]), "zorder": zorder, **options}
        points, _, lines = self.ax_.errorbar(
            x[some], y[some], xerr=across, yerr=along, **look
        )
        points.set_label(name)
        self.errors_ += lines
        return points

    def _draw_bound(self) -> None:
        self.bound_ = self.forbidden_ = None
        if self.bound is None:
            return
        ax = self.ax_
        low, high = ax.get_xlim()
        room = 0.04 * (high - low)
        low, high = min(low, self.bound - room), max(high, self.bound + room)
        name = f"bound {self.bound:g}"
        self.bound_ = draw.mark(ax, self.bound, "x", linestyle="--", label=name)
        beyond = (low, self.bound) if self.larger_is_fairer else (self.bound, high)
        shade: dict[str, Any] = {"color": "#000000", "alpha": 0.06, "lw": 0}
        self.forbidden_ = ax.axvspan(*beyond, zorder=0, **shade)
        ax.set_xlim(low, high)


def _scores(cv_results: Mapping[str, Any], key: str) -> tuple[Array, Array | None]:
    """Return the scores and their standard errors, which are None without two folds."""
    scores, weight = search_scores(cv_results, key)
    several = weight.shape[1] > 1
    return scores, search_error(cv_results, key, weight)[0] if several else None
