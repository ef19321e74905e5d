"""The metrics of rankings that an audit has where they are asked for."""

from __future__ import annotations

from functools import partial

from ..metrics import (
    dips,
    exposure_gap,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    skew_at_k,
)
from .audit_metric import PLACES, RANKING, AuditMetric

_CUTS = 5  # places between two cuts of rND, rRD and rKL
_BY_CHANCE = "Nothing to test here: a fair ranking of few items is above 0 by chance."
_READING = (
    "0 is statistical parity, which looks at no outcomes. A fair ranking of few "
    "items is above 0 by chance; the test() of the metric shuffles the labels."
)
#: Of the shares of a group in the first places, whatever the outcomes.
_parity = partial(
    AuditMetric,
    merit=False,
    share=False,
    question=PLACES,
    tasks=RANKING,
    of_rows=True,
    whole=True,
    on_request=True,
)
_AT_CUTS = f"after each {_CUTS} places of a query, the first ones counting most"

ON_REQUEST = (
    AuditMetric(
        name="dips",
        estimates=partial(dips, position_weight="dcg"),
        title="Dissatisfaction by pairwise swaps (DIPS)",
        short="DIPS",
        measures=(
            "How many visits go to less relevant items of others that are ranked above "
            "the group's items, as a share of the most that there could be?"
        ),
        reading=(
            "0 is no reason for dissatisfaction, 100% the worst ranking of the group. "
            "The value of a random ranking depends on the size of the group."
        ),
        untested="Nothing to test: a random ranking has other values for other groups.",
        tasks=RANKING,
        of_rows=True,
        whole=True,
        on_request=True,
        axis="share of the largest dissatisfaction, %",
        cut="top",
    ),
    AuditMetric(
        name="exposure_gap",
        estimates=exposure_gap,
        title="Exposure gap",
        short="Exposure gap",
        measures=(
            "How far is the group's share of exposure from the one that it has in the "
            "ranking by outcome, if the first places count most?"
        ),
        reading=(
            "0 is the share that the outcomes merit. A ranking that knows little is "
            "nearer to equal shares than the outcomes are, whosever the items."
        ),
        low="shown less than its outcomes merit",
        high="shown more than its outcomes merit",
        worse="low",
        worse_if_low="high",
        merit=False,
        question=PLACES,
        tasks=RANKING,
        of_rows=True,
        whole=True,
        on_request=True,
        axis="share of exposure minus the share merited, percentage points",
        cut="top",
    ),
    _parity(
        name="ndkl",
        estimates=ndkl,
        title="Divergence of the first places (NDKL)",
        short="NDKL",
        measures=(
            "How far is the group's share of the first places from its share of the "
            "list, at each place, as a divergence in nats?"
        ),
        reading=_READING,
        untested=_BY_CHANCE,
        axis="divergence, nats",
    ),
    *(
        _parity(
            name=metric.__name__,
            estimates=partial(metric, step=_CUTS),
            title=f"Normalised discounted {name} ({short})",
            short=short,
            measures=f"How far is {what} {_AT_CUTS}?",
            reading=_READING,
            untested=_BY_CHANCE,
            axis="share of its largest value",
        )
        for metric, name, short, what in (
            (
                normalized_discounted_difference,
                *("difference", "rND"),
                "the group's share of the first places from its share of the list,",
            ),
            (
                normalized_discounted_ratio,
                *("ratio", "rRD"),
                "the ratio of group to rest in the first places from that of the list,",
            ),
            (
                normalized_discounted_kl,
                *("divergence", "rKL"),
                "the group's share of the first places in nats from that of the list,",
            ),
        )
    ),
    _parity(
        name="skew_at_k",
        estimates=skew_at_k,
        title="Skew of the first places",
        short="Skew",
        measures=(
            "How many times its share of the list is the group's share of the first "
            "places, as a logarithm?"
        ),
        reading=(
            "0 is statistical parity, which looks at no outcomes. It is minus infinity "
            "where some query has nobody of the group in its first places."
        ),
        untested="Nothing to test: it is minus infinity too easily.",
        cut="k",
        only_cut=True,
        axis="logarithm of the ratio of shares",
    ),
)
