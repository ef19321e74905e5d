"""How often the confidence bounds of a constrained search hold."""

import numpy as np
import pytest

from benchmarks.simulations.common import tolerance
from skrankfair.metrics import pairwise_accuracy
from skrankfair.scoring import with_errors
from tests.test_model_selection import Candidate, Data, constrain, scorer_of

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize(("n_splits", "n_groups"), [(2, 2), (5, 4)])
def test_a_confidence_bound_holds_as_often_as_it_says(n_splits, n_groups):
    """Of a model that is biased, and of one that is not; few clusters per fold."""
    scorer, level, times = scorer_of(pairwise_accuracy), 0.9, 60
    scoring = with_errors({"gap": scorer})
    whole = Data(20_000, n_groups=n_groups)
    for candidate in (0, 3):
        model = Candidate(candidate).fit(whole.X, whole.y)
        truth = -scorer(model, whole.X, whole.y)
        held = 0
        for seed in range(times):
            data = Data(40, seed=seed + 1, n_groups=n_groups)
            results = {"mean_test_quality": [1.0], "split0_test_quality": [1.0]}
            for k, (_, rows) in enumerate(data.splits(n_splits)):
                scores = scoring(model, data.X.iloc[rows], data.y[rows])
                results |= {f"split{k}_test_{n}": [v] for n, v in scores.items()}
            for name in scores:
                folds = [results[f"split{k}_test_{name}"] for k in range(n_splits)]
                results[f"mean_test_{name}"] = np.mean(folds, axis=0)
            choose = constrain(9, confidence_level=level)
            choose(results)
            held += choose.table_["gap_bound"][0] >= truth
        margin = tolerance(level, times)
        assert held / times >= level - margin, (candidate, held / times)
