"""Results as JSON: what is read is what was written, to the bit, and nothing else."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skrankfair import metrics
from skrankfair._estimates import older, storage
from skrankfair.inference import compare
from skrankfair.metrics._disparities import DISPARITIES
from tests.estimates.test_resampled import columns
from tests.metrics.common import EVERY_CASE, labelled, overlapping
from tests.metrics.test_invariances import cases_where

NUMBERS = ("estimate", "standard_error", "covariance", "df", "n_effective", "support")


def read(result):
    """Return the result as it is read from its text."""
    return metrics.GroupEstimates.from_json(result.to_json())


def assert_identical(actual, expected):
    """Require the same numbers, to the last bit, and the same meaning."""
    for name in NUMBERS:
        one, two = getattr(actual, name), getattr(expected, name)
        np.testing.assert_array_equal(one, two, err_msg=name)
    for name in ("groups", "metric", "parameters", "first_pass", "n_clusters"):
        assert getattr(actual, name) == getattr(expected, name)
    assert [type(g) for g in actual.groups] == [type(g) for g in expected.groups]
    assert repr(actual) == repr(expected)


def test_groups_by_chance_were_one_function():
    c = labelled()
    result = metrics.exposure_gap(
        np.abs(c.y), c.s, sensitive_features=c.group, **c.rest
    )
    function = '{"function": "exposure_gap.powers_by_chance"}'
    text = result.to_json().replace(f'{{"tuple": [{function}]}}', function)
    assert_identical(metrics.GroupEstimates.from_json(text), result.compact())


OF_SCORES = {
    "group_mean": lambda y_true, y_score, **rest: metrics.group_mean(y_score, **rest),
    "calibration_error": partial(metrics.calibration_error, bandwidth=0.2),
    "calibration_error-edges": partial(
        metrics.calibration_error, method="binned", bins=[0.0, 0.25, 0.5, 1.0]
    ),
    "positive_rate_shift": partial(
        metrics.positive_rate_shift, threshold=0.5, bandwidth=0.2, n_resamples=3
    ),
    "rank_shift": partial(metrics.rank_shift, bandwidth=0.2, n_resamples=3),
}


class TestRoundTrip:
    @pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
    @cases_where(lambda case: True)
    def test_rankings(self, case):
        result = case(labelled())
        again = read(result)
        assert_identical(again, result.compact())
        assert again.to_json() == result.to_json()

    @pytest.mark.parametrize("name", OF_SCORES)
    def test_scores(self, name):
        result = OF_SCORES[name](**columns(20))
        assert_identical(read(result), result.compact())

    def test_every_metric_is_tried(self):
        tried = {case.metric.__name__ for case in EVERY_CASE.values()}
        tried |= {name.partition("-")[0] for name in OF_SCORES}
        others = {"expected_advantage", "matched_pair_curve", "make_metric"}
        others.add("item_dissatisfaction")
        others |= {*DISPARITIES, "equalized_odds"}  # which are of other metrics
        functions = {n for n in metrics.__all__ if n[0].islower()} - others
        assert functions <= tried, "store the new metric's result in this test too"

    @pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
    def test_differences_strata_and_breakdowns(self):
        for c in (overlapping(), labelled()):
            who = {"sensitive_features": c.group, "qid": c.q}
            one, two = (metrics.pairwise_accuracy(c.y, s, **who) for s in (c.s, -c.s))
            strata = {"engagement": c.z, "bins": 2}
            for result in (
                one.against_rest(),
                compare(one, two),
                metrics.pairwise_accuracy(c.y, c.s, **strata, **who),
                metrics.exposure_gap(c.y, c.s, **who),
                metrics.dips(c.y, c.s, **who),
            ):
                again, expected = read(result), result.compact()
                assert_identical(again, expected)
                if result.metric.breakdown is not None:
                    tables = again.breakdown(), expected.breakdown()
                    pd.testing.assert_frame_equal(*tables)

    @pytest.mark.parametrize(
        "array",
        [
            np.array([0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 2.0**-1074]),
            np.array([np.nan, np.inf, -np.inf, 0.0]),
            np.array([2**63 - 1, -(2**63)]),
            np.array([2**64 - 1, 0], dtype=np.uint64),
            np.arange(6, dtype=np.float32).reshape(2, 3),
            np.zeros((0, 3)),
            np.array([[True, False]]),
            np.array(["a", "bcd"]),
            np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]"),
        ],
        ids=lambda array: f"{array.dtype}-{array.size}",
    )
    def test_keeps_every_bit(self, array):
        again = decoded(array)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert again.tobytes() == array.tobytes()

    def test_keeps_objects_and_sparse_arrays(self):
        for values in ([1, "a", None], [("f", 30), ("m", 40)]):
            assert decoded(np.fromiter(values, object)).tolist() == values
        again = decoded(sparse.csr_array(np.eye(5)))
        np.testing.assert_array_equal(again.toarray(), np.eye(5))


def decoded(value):
    """Return a value as it is read from strict JSON."""
    text = storage.to_text({"value": value})
    json.loads(text, parse_constant=pytest.fail)
    return storage.decoded(storage.read_json(text)["value"])


class Odd:
    """A label of a type of the user's own."""

    def __repr__(self):
        return "odd"


class TestLabels:
    @pytest.mark.parametrize(
        "label",
        [
            *("a", "1", "", " ", "nan", "é", "e\u0301", "\ud800", "</script>"),
            *(1, -1, 2**53 + 1, 10**30, 1.5, -0.0, 1e-300, float("inf"), True, None),
            *(("f", 30), (), ("a", (1, date(2020, 1, 1)))),
            *(date(2020, 1, 31), datetime(2020, 1, 31, 12)),
            datetime(2020, 1, 1, tzinfo=UTC),
            datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
            pd.Timestamp("2020-01-01 00:00:00.000000001"),
            pd.Timestamp("2020-06-01").as_unit("s"),
            pd.Interval(0, 1.5),
            pd.Interval(pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01"), "left"),
            *(np.int64(3), np.float32(0.1), np.str_("a"), np.bool_(False)),
        ],
        ids=repr,
    )
    def test_keeps_value_and_type(self, label):
        again = decoded(label)
        assert type(again) is type(label)
        assert again == label
        assert hash(again) == hash(label)
        assert repr(again) == repr(label)

    def test_of_clusters_stay_at_home(self):
        given = {**columns(20), "cluster": [f"Ann {i // 8}" for i in range(160)]}
        assert "Ann" not in metrics.log_loss(**given).to_json()

    def test_refuses_other_types_by_name(self):
        labels = np.array([Odd(), Odd()], dtype=object)
        given = {**columns(20), "sensitive_features": labels[[0, 1] * 80]}
        with pytest.raises(ValueError, match=r"groups has odd, of type Odd, .*strings"):
            metrics.log_loss(**given).to_json()

    def test_refuses_functions_of_the_user(self):
        c = labelled()
        who = {"sensitive_features": c.group, "qid": c.q}
        with pytest.raises(ValueError, match=r"parameters has <ufunc 'reciprocal'>"):
            metrics.exposure(None, c.s, position_weight=np.reciprocal, **who).to_json()
        result = metrics.exposure(None, c.s, position_weight=[1.0, 0.5, 0.25], **who)
        assert_identical(read(result), result.compact())


def zeros(kind, size):
    """Return an array none of whose values is in the text."""
    return {"array": {"type": kind, "shape": [size], "places": [], "values": []}}


GOOD = json.loads(metrics.log_loss(**columns(20)).to_json())


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "match"),
        [
            (None, "text must be what to_json"),
            ("", "text must be JSON"),
            ("[" * 100_000, "text must be JSON"),
            ("NaN", "NaN is not strict JSON"),
            ("[]", "must have the schema 'skrankfair.GroupEstimates'.*got None"),
            ('{"schema": "other"}', "got 'other'"),
            (json.dumps({**GOOD, "schema_version": 2}), "got 2, .*Update skrankfair"),
            (json.dumps({**GOOD, "schema_version": True}), "schema_version"),
            (json.dumps({k: v for k, v in GOOD.items() if k != "sums"}), "'sums'"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_not_a_result(self, text, match):
        with pytest.raises(ValueError, match=match):
            metrics.GroupEstimates.from_json(text)

    @pytest.mark.parametrize(
        "bad",
        [
            {"function": "os.system"},
            {"object": "os.path.Path", "fields": {}},
            {"object": "Metric", "fields": {"name": "x", "other": 1}},
            {"object": "exposure_gap.breakdown", "fields": {}},
            {"function": "ColumnSum"},
            {"array": {"type": "float64", "shape": [10**6, 10**6], "values": []}},
            zeros("<U100000000", 1),
            zeros("float64", 1 << 27),
            {"tuple": [zeros("int8", 1 << 26)] * 2},
            {"array": {"type": "<U100000000", "shape": [1], "values": ["a"]}},
            {"array": {"type": "float64", "shape": [-1, -1], "values": [1.0]}},
            {"array": {"type": "V400000000", "shape": [1], "values": [0]}},
            {"scalar": {"type": "float64", "shape": [2**400], "values": []}},
            {"sparse": {"row": [], "column": [], "values": [], "shape": [1 << 40, 1]}},
            {"Fraction": "1e30000000"},
        ],
        ids=lambda bad: str(bad)[:80],
    )
    def test_runs_and_makes_nothing_else(self, bad, monkeypatch):
        for name in ("zeros", "array", "empty"):
            monkeypatch.setattr(storage.np, name, pytest.fail)
        for place in ("metric", "sums"):
            with pytest.raises(ValueError, match="wrong or missing parts"):
                metrics.GroupEstimates.from_json(json.dumps({**GOOD, place: bad}))

    @pytest.mark.parametrize(
        ("old", "new", "match"),
        [
            ('"count": 20.0', '"count": -20.0', "a negative count"),
            ('{"map": []}', '{"map": [["dropped", -3]]}', "a negative count"),
            ("19, 19, 19]", "19, 19, 20]", "outside the 20 rows"),
            ("0, 1, 2]}}", "0, 1, -1]}}", "outside the 3 rows or groups"),
        ],
    )
    def test_no_count_is_negative_and_no_entry_outside(self, old, new, match):
        document = json.dumps(GOOD)
        assert old in document
        with pytest.raises(ValueError, match=match):
            metrics.GroupEstimates.from_json(document.replace(old, new))

    def test_large_arrays_of_zeros_can_be_read(self, monkeypatch):
        monkeypatch.setattr(storage, "_MOST_UNWRITTEN", 1 << 16)
        monkeypatch.setattr(storage, "_MOST_WITH_PLACES", 1 << 11)
        assert np.array_equal(decoded([np.zeros(512)] * 17), np.zeros((17, 512)))

    def test_any_part_may_be_wrong(self):
        rng = np.random.default_rng(0)
        wrong = [None, True, -1, 10**400, 1.5, "a", [], {}, [[1]], {"tuple": [1]}]
        refused = 0
        for _ in range(300):
            document = json.loads(json.dumps(GOOD))
            *path, last = random_path(document, rng)
            parent = document
            for step in path:
                parent = parent[step]
            parent[last] = wrong[rng.integers(len(wrong))]
            try:
                metrics.GroupEstimates.from_json(json.dumps(document))
            except ValueError:
                refused += 1
        assert refused > 200


def random_path(document, rng):
    """Return the steps from a document to one of its parts."""
    path = []
    while isinstance(document, dict | list) and document:
        keys = list(document) if isinstance(document, dict) else range(len(document))
        path.append(keys[int(rng.integers(len(keys)))])
        document = document[path[-1]]
        if rng.random() < 0.1:
            break
    return path


@pytest.mark.parametrize("name", older.FUNCTIONS)
def test_function_that_was_a_class_is_read(name):
    of_class = {"object": name, "fields": {}}
    assert storage.decoded(of_class) is storage.decoded({"function": name})
