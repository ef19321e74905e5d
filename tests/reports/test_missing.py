"""Rows that lack an outcome, a score or a label of a group."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from skrankfair import audit
from skrankfair.__main__ import main

RNG = np.random.default_rng(0)
N = 1200
QUERY = np.repeat(np.arange(N // 10), 10)
GROUP = RNG.choice(["f", "m"], N).astype(object)
Y = (RNG.random(N) < 0.4).astype(float)
SCORE = RNG.random(N)
WEIGHT = (1.0 + QUERY % 3).tolist()
NO_Y, NO_SCORE, NO_GROUP = (np.arange(N) % 40 == place for place in (3, 7, 11))
NO_Y[7] = True  # a row that lacks both
LACKING = {
    "y_true": np.where(NO_Y, np.nan, Y),
    "y_score": np.where(NO_SCORE, np.nan, SCORE),
    "sensitive_features": np.where(NO_GROUP, None, GROUP),
}
REST = {"qid": QUERY, "sample_weight": WEIGHT, "metrics": "inter_group_accuracy"}
KEPT = ~(NO_Y | NO_SCORE | NO_GROUP)


def take(rows, groups=GROUP):
    return {
        "y_true": Y[rows],
        "y_score": SCORE[rows],
        "sensitive_features": groups[rows],
        **REST,
        "qid": QUERY[rows],
        "sample_weight": np.array(WEIGHT)[rows],
    }


def same(report, expected):
    a, b = (r.results["inter_group_accuracy"] for r in (report, expected))
    assert a.groups == b.groups
    assert_array_equal(a.estimate, b.estimate)
    assert_array_equal(a.standard_error, b.standard_error)
    assert report.n_rows == expected.n_rows


DROPPED = (
    "90 of 1,200 rows are left out: 31 lack y_true, 30 lack y_score, 30 lack "
    "sensitive_features."
)


def frame_of(library):
    return {name: library.Series(values.tolist()) for name, values in LACKING.items()}


@pytest.mark.parametrize("columns", [LACKING, frame_of(pd), frame_of(pl)])
def test_drop_leaves_out_the_rows_and_says_how_many(columns):
    with pytest.warns(UserWarning, match=DROPPED) as said:
        report = audit(**columns, **REST, missing="drop")
    assert len(said) == 1
    assert report.notes[0] == DROPPED
    assert DROPPED in report.to_dict()["notes"]
    same(report, audit(**take(KEPT)))


def test_group_keeps_rows_without_a_label():
    with pytest.warns(UserWarning, match="30 of 1,200 rows have no label.*'missing'"):
        report = audit(**LACKING, **REST, missing="group")
    labels = np.where(NO_GROUP, "missing", GROUP)
    same(report, audit(**take(~(NO_Y | NO_SCORE), labels)))
    assert len(report.notes) == 2
    assert report.notes[1].startswith("60 of 1,200 rows are left out: 31 lack y_true")


def test_columns_that_are_crossed_and_memberships():
    age = np.where(np.arange(N) % 30 == 2, np.nan, RNG.integers(1, 3, N))
    crossed = pd.DataFrame({"sex": GROUP, "age": age})
    with pytest.warns(UserWarning, match="have no label"):
        report = audit(Y, SCORE, sensitive_features=crossed, **REST, missing="group")
    assert ("f", "missing") in report.group_rows
    member = pd.DataFrame({"a": RNG.random(N) < 0.5, "b": RNG.random(N) < 0.5})
    lost = member.astype(object)
    lost.loc[5, "a"] = None
    with pytest.warns(UserWarning, match="1 of 1,200 rows are left out"):
        report = audit(Y, SCORE, sensitive_features=lost, **REST, missing="drop")
    assert report.overlapping
    assert tuple(report.group_rows) == ("a", "b")


@pytest.mark.parametrize("missing", ["drop", "group"])
def test_nothing_is_said_where_nothing_lacks(missing):
    columns = take(np.arange(N))
    same(audit(**columns, missing=missing), audit(**columns))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "y_score must be finite"),
        ({"missing": "ignore"}, "missing must be one of 'raise', 'drop', 'group'"),
        ({"missing": "drop", "y_true": [np.nan] * N}, "missing='drop' leaves no row"),
        ({"missing": "drop", "y_true": [0.0, np.nan]}, "same number of rows"),
        ({"missing": "drop", "qid": [None, *QUERY[1:]]}, "qid must not have missing"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        audit(**{**LACKING, **REST, **options})


@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_the_command_line_drops_rows(tmp_path, capsys):
    table = pd.DataFrame({**LACKING, "q": QUERY})
    table.to_csv(tmp_path / "table.csv", index=False)
    call = ["audit", str(tmp_path / "table.csv"), "--y-true", "y_true", "--qid", "q"]
    call += ["--y-score", "y_score", "--sensitive-features", "sensitive_features"]
    assert main(call) == 2
    assert "must have a" in capsys.readouterr().err
    assert main([*call, "--missing", "drop"]) == 0
    assert DROPPED in capsys.readouterr().out
    assert main([*call, "--missing", "group"]) == 0
    assert "missing" in capsys.readouterr().out
