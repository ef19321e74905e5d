"""What metrics refuse, and in which words; for what all read alike see `inputs`."""

import numpy as np
import pytest

from skrankfair import metrics
from tests.calls import OF_ITEMS, call

NAN, INF = np.nan, np.inf
MEMBER = np.array([[True, True], [False, True], [True, False]] * 2)
OVERLAPPING, ALONE = {"sensitive_features": MEMBER}, {"sensitive_features": ["a"] * 6}
WEIGHT = "position_weight must"
DCG, N_PAIRS = {"position_weight": "dcg"}, {"epsilon": None, "n_pairs": 3}
#: NumPy takes an array of one for a number, with a DeprecationWarning.
OF_NUMBERS = {"qid": range(6), "position_weight": lambda k: 1 / float(k)}
LOCAL = {"epsilon": "mse", "estimator": "local_linear"}
MATCHED = metrics.matched_pair_calibration
OF_SHARES = (
    metrics.normalized_discounted_difference,
    metrics.normalized_discounted_ratio,
    metrics.normalized_discounted_kl,
    metrics.ndkl,
    metrics.skew_at_k,
)
TARGETS = [
    ("half", "target must be None, 'equal' for disjoint groups, or a .* got 'half'"),
    (0.5, "target must be .*got 0.5"),
    ({"f": 1.0}, "target must .*a share by group; it has none of m"),
    ({"f": 0.5, "m": 0.6}, "target must .*that sum to 1"),
    ({"f": 0.0, "m": 1.0}, "target must .*shares between 0 and 1"),
    ({"f": -0.5, "m": 1.5}, "target must be"),
    ({"f": "x", "m": 0.5}, "target must be"),
]
REFUSED = {
    metrics.pairwise_exposure: [
        ({"item_weight": [1, -1, 2, 1, 1, 1]}, "item_weight must not .*-1.0 in row 1"),
        ({"item_weight": [0] * 6}, "item_weight must have a positive value"),
        ({"item_weight": [1, 2]}, "All columns .*item_weight: 2"),
        ({"item_weight": [1, NAN, 2, 1, 1, 1]}, "item_weight must be finite"),
        (
            {"item_weight": [1, 1, 1, 0, 0, 0], "sample_weight": [0, 0, 0, 1, 1, 1]},
            "sample_weight and item_weight must both be positive in some row",
        ),
        ({"engagement": [1] * 6}, "y_true must be given with engagement"),
        ({"k": 1, "variance": "item"}, "k needs variance='cluster'"),
        ({"k": 0}, r"k must be an integer in \[1, inf\]; got 0"),
        # Further apart than sums can hold.
        ({"item_weight": [1e13, 1, 1, 1, 1, 1]}, "item_weight .* from 1 to 1e"),
    ],
    metrics.mean_position: [
        ({"y_true": [0, 1, 2, 0, 1, 0]}, "y_true must be 0 or 1 .*for mean_position"),
        ({"comparison": "both"}, "comparison must be one of"),
        ({"engagement": [NAN] * 6}, "engagement must be known .* in row 0"),
        ({"cluster": np.ones((6, 2))}, "cluster must"),
    ],
    MATCHED: [
        ({"adjacent": 2}, r"adjacent must be one of False, True; got 2\.$"),
        ({"estimator": "ols"}, "estimator must be one of 'mean', 'local_linear', 'loc"),
        ({"position_weight": [0, 0]}, "position_weight must be positive at some rank"),
        ({"position_weight": np.ones(9999)}, "position_weight must be 0 after rank"),
        ({**DCG, "variance": "item"}, "position_weight needs variance='cluster'"),
        ({**DCG, "cluster": np.ones((6, 2))}, "position_weight needs .* one column"),
        ({**N_PAIRS, "item_weight": [1] * 6}, "n_pairs counts pairs.*got 3"),
        ({"epsilon": "mse"}, "epsilon='mse' is the bandwidth of a local"),
        ({**LOCAL, "average": "queries"}, "epsilon='mse' is the bandwidth of a local"),
        *(
            ({"covariates": np.ones(6), **options}, message)
            for options, message in (
                ({"epsilon": None}, "epsilon must be given; got None"),
                ({"epsilon": "mse"}, "epsilon must be a number in .*; got 'mse'"),
                ({"epsilon": {"f": 0.1, "m": 0.2}}, "epsilon must be a number"),
                ({"epsilon": INF}, "epsilon must be a number"),
                ({"adjacent": True}, "adjacent must be False with covariates"),
                ({"covariates": [1, 2]}, "All columns .*covariates: 2"),
                ({"covariates": [NAN] * 6}, "covariates must be finite"),
            )
        ),
    ],
    metrics.matched_pair_curve: [
        ({"epsilon": 0.1}, "epsilon must be 1-dimensional"),
        ({"epsilon": []}, "epsilon must have at least one row"),
        ({"epsilon": [0.1, -0.2]}, r"epsilon must not be negative; got -0\.2"),
        ({"epsilon": [0.1, NAN]}, "epsilon must be finite"),
        ({"epsilon": ["a"]}, "epsilon must be numeric"),
        ({"direction": "above"}, "direction must be one of"),
        ({"epsilon": [0.1], "quantile": 0.1}, "Only one of epsilon, n_pairs and quant"),
        ({"y_score": None}, "y_score must be given"),
        ({"y_true": None}, "y_true must be given"),
    ],
    metrics.dips: [
        ({"position_weight": [1, 0.5, 0.6]}, f"{WEIGHT} not increase.*0.5 at rank 2"),
        ({"position_weight": [0] * 3}, "position_weight must be positive at .* got 0"),
        ({"position_weight": lambda k: k - 1.0}, f"{WEIGHT} be positive at rank 1"),
        ({"comparison": "intra"}, "comparison must be one of 'inter', 'all'"),
        ({"divisor": None}, "divisor must be one of 'maximum', 'pairs'"),
        *(
            ({"tie_cost": bad}, r"tie_cost must be a number in \[0, 1\]")
            for bad in (-0.1, 1.1, "0", None, True)
        ),
        ({**OVERLAPPING, "against": 0}, "sensitive_features must be disjoint"),
        ({**ALONE, "against": "a"}, "against must leave other groups"),
        ({"against": "f", "comparison": "all"}, "comparison must be"),
    ],
    metrics.exposure: [
        ({"position": [*bad, 1, 2, 3]}, f"position must {message}")
        for bad, message in (
            ([1, 2, 2], "differ between the items of a query.* position 2"),
            ([0, 1, 2], r"be a rank, an integer in \[1, 10,000,000\].*got 0"),
            ([1, 2.5, 3], "be a rank.*got 2.5"),
            ([1, 2, 1e8], r"be a rank.*got 1e\+08"),
            ([1, 2, NAN], "be finite"),
        )
    ],
    metrics.exposure_gap: [
        ({"target": "merit"}, "target must be one of 'expected', 'relevance', 'pop"),
        ({"average": "pairs"}, "average must be one of 'queries', 'clusters', 'amort"),
        *(
            ({"target": "relevance", "y_true": bad}, f"y_true must {message}")
            for bad, message in (
                ([1, 0, 0, -1, 2, 3], "not be negative for target='relev.*; got -1"),
                ([1e308] * 6, r"have a finite sum.*the largest is 1e\+308"),
            )
        ),
    ],
    metrics.boost_value: [
        ({"boost": INF}, "boost must be a number"),
        ({"position_weight": [0.5, 1], "normalize": True}, f"{WEIGHT} not increase"),
        ({"normalize": "yes"}, "normalize must be one of True, False"),
    ],
    metrics.normalized_discounted_difference: [
        ({"step": 0}, "step must be"),
        ({"step": 2.5}, "step must be"),
        ({"average": "pairs"}, "average must be"),
        ({"normalize": "yes"}, "normalize must be"),
    ],
    metrics.normalized_discounted_ratio: [
        ({"zero_division": -1}, "zero_division must be"),
        ({"zero_division": INF}, "zero_division must be"),
    ],
    metrics.normalized_discounted_kl: [({"joint": 1}, "joint must be")],
    metrics.ndkl: [
        ({"joint": None}, "joint must be"),
        ({"average": None}, "average must be"),
        ({**OVERLAPPING, "target": "equal"}, "target must .*'equal' for disjoint"),
    ],
    metrics.skew_at_k: [
        ({"k": 0}, "k must be"),
        ({"average": "pairs"}, "average must be"),
        ({"k": 1, "step": 1}, "k must be None with a step"),
    ],
    metrics.exposure_parity: [
        ({"signed": 1}, "signed must be"),
        ({"divisor": "pairs"}, "divisor must be"),
    ],
    metrics.pairwise_parity: [
        ({"signed": None}, "signed must be"),
        ({"average": "pairs"}, "average must be"),
    ],
    metrics.precision_at_k: [
        ({"k": bad}, "k must be an integer") for bad in (0, 2.0, None, "3")
    ],
    metrics.share_at_k: [({"average": "pairs"}, "average must be one of 'items', 'qu")],
    metrics.item_dissatisfaction: [(OVERLAPPING, "sensitive_features must be dis")],
    metrics.rank_shift: [({"cluster": range(6)}, "cluster must be constant within")],
}
for metric in OF_ITEMS:
    message = "position_weight must be positive at rank 1"
    REFUSED[metric] += [({"position_weight": [0, 1]}, message)]
    REFUSED[metric] += [(OF_NUMBERS, ".* takes an array of ranks 1, 2")]
for metric in (metrics.auc, metrics.precision_at_k, metrics.recall_at_k):
    message = rf"y_true must be 0 or 1 for {metric.__name__}; got 2 in row 1\.$"
    wrong = {"y_true": [1, 2, 0, 1, 0, 1]}
    REFUSED[metric] = [*REFUSED.get(metric, []), (wrong, message)]
for metric in OF_SHARES:
    REFUSED[metric] += [({"target": bad}, message) for bad, message in TARGETS]
for metric in (metrics.ndkl, metrics.normalized_discounted_kl):
    joint = {**OVERLAPPING, "joint": True}
    REFUSED[metric] += [(joint, "sensitive_features must be disjoint")]


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [(metric, *case) for metric, cases in REFUSED.items() for case in cases],
)
def test_what_is_refused(metric, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call(metric, **options)
