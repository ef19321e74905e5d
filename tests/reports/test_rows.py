"""Several groupings in one report, references, and gaps within levels of a column."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skrankfair import AuditReport, audit, audit_cv
from skrankfair.metrics import pairwise_accuracy, pairwise_exposure, selection_rate
from tests.reports.common import data, risks, written

#: Admitted and rejected men, then women, by department: Bickel et al. (1975), in R's
#: ``UCBAdmissions``.
BERKELEY = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}


@pytest.fixture(scope="module")
def berkeley():
    columns = ["sex", "admitted"]
    kinds = pd.MultiIndex.from_product([["m", "f"], [1.0, 0.0]], names=columns)
    table = pd.DataFrame(BERKELEY, index=kinds).reset_index()
    table = table.melt(columns, var_name="department", value_name="n")
    return table.loc[table.index.repeat(table["n"])].reset_index(drop=True)


def of_decisions(rows, **options):
    given = {"task": "decision", "favorable": "high", "metrics": "selection_rate"}
    given |= {"sensitive_features": rows["sex"], **options}
    return audit(rows["admitted"], rows["admitted"], **given)


def gaps_of(report):
    """Return the gap by level, in units of the metric, of the first group shown."""
    rows = report.sections[0].rows
    of_first = [row for row in rows if row[1] == rows[0][1]]
    return {row[2]: float(row[3].removesuffix(" points")) / 100 for row in of_first}


class TestWithin:
    def test_the_gap_of_berkeley_is_none_within_departments(self, berkeley):
        report = of_decisions(berkeley, within=berkeley["department"])
        selected, within = report.headline.splitlines()
        assert selected.endswith(
            "f (557 of 1,835, 30.4%; 1,198 of 2,691 of the rest, 44.5%)."
        )
        assert within == "Within the levels of department the data do not show a gap."
        gaps = gaps_of(report)
        weights, differences, variance = [], [], []
        for department, (yes_m, no_m, yes_f, no_f) in BERKELEY.items():
            n_m, n_f = yes_m + no_m, yes_f + no_f
            p_m, p_f = yes_m / n_m, yes_f / n_f
            assert gaps[department] == pytest.approx(p_f - p_m, abs=6e-4)
            differences.append(p_f - p_m)
            weights.append(n_m * n_f / (n_m + n_f))
            variance.append(p_m * (1 - p_m) / (n_m - 1) + p_f * (1 - p_f) / (n_f - 1))
        share = np.array(weights) / np.sum(weights)
        assert gaps["within all levels"] == pytest.approx(share @ differences, abs=6e-4)
        row = next(r for r in report.sections[0].rows if r[2] == "within all levels")
        low, high = (float(end) / 100 for end in row[4].strip("[]").split(", "))
        error = np.sqrt(share**2 @ variance)
        assert (high - low) / 2 == pytest.approx(1.96 * error, abs=1e-3)

    def test_a_gap_that_is_there_within_levels_is_found(self):
        columns = {**risks(), "task": "risk", "metrics": "calibration_in_the_large"}
        level = np.tile(["x", "y"], 1500)
        report = audit(**columns, within=pd.Series(level, name="region"))
        assert "Within the levels of region a gap remains: b (" in report.headline
        assert "Within the levels of region a gap remains" in report.to_markdown()
        assert AuditReport.from_json(report.to_json()).headline == report.headline

    @pytest.mark.parametrize("metric", ["selection_rate", "calibration_in_the_large"])
    def test_a_small_group_without_events_is_not_accused(self, metric):
        event = np.tile(np.arange(66) > 56, 2) * 1.0  # 0 of 6, 9 of 60
        score = event if metric == "selection_rate" else np.linspace(0.149, 0.151, 132)
        who = {"sensitive_features": np.tile(np.repeat(["f", "m"], [6, 60]), 2)}
        for level in (np.arange(132) // 66, np.zeros(132)):
            report = audit(event, score, **who, metrics=metric, within=level)
            assert "the data do not show a gap" in report.headline
        assert report.sections[0].rows[1][3:5] == report.sections[0].rows[2][3:5]

    @pytest.mark.parametrize("clustered", [False, True])
    def test_pairs_are_those_of_one_level(self, clustered):
        columns = data(n_queries=60)
        level = np.arange(600) % 3
        user = columns["qid"] // 2 if clustered else None
        names = ["inter_group_accuracy", "pairwise_exposure"]
        report = audit(**columns, cluster=user, within=level, metrics=names)
        lines = {(row[0], row[2]): row for row in report.sections[0].rows}
        for k in range(3):
            own = level == k
            rows = {name: np.asarray(values)[own] for name, values in columns.items()}
            rows["cluster"] = rows["qid"] if user is None else user[own]
            accuracy = pairwise_accuracy(**rows, comparison="inter").contrast("f", "m")
            exposure = pairwise_exposure(**rows).estimate[0] - 0.5
            expected = {"Inter-group": accuracy.estimate, "Exposure": exposure}
            for name, value in expected.items():
                said = float(lines[name, str(k)][3].removesuffix(" points"))
                assert said == pytest.approx(100 * value, abs=0.051)
        # Values that are fair on their own are weighted by their pairs.
        pooled = pairwise_exposure(**columns | {"qid": columns["qid"] * 3 + level})
        said = float(lines["Exposure", "within all levels"][3].removesuffix(" points"))
        assert said == pytest.approx(100 * pooled.estimate[0] - 50, abs=0.051)
        # In pairs within groups the rest are the pairs within each of its groups.
        columns["sensitive_features"] = np.arange(600) // 2 % 5
        report = audit(**columns, within=level * 0, metrics="intra_group_accuracy")
        assert len(gaps := [row[3] for row in report.sections[0].rows]) == 15
        assert gaps[::3] == gaps[1::3] == gaps[2::3]

    def test_items_of_one_list_stay_independent(self):
        columns = data(n_queries=60)
        del columns["qid"]
        columns["metrics"] = "inter_group_accuracy"
        report = audit(**columns, within=np.arange(600) % 2)
        pooled = next(r for r in report.sections[0].rows if r[2] == "within all levels")
        alone = report.findings[0].rows[0]
        low, high = (float(end) / 100 for end in pooled[4].strip("[]").split(", "))
        # As wide as without levels, but for the pairs across them.
        assert 0.9 < (high - low) / (alone.difference_high - alone.difference_low) < 1.6

    def test_what_is_wrong_is_named(self, berkeley):
        with pytest.raises(ValueError, match=r"within.*4526|4526.*within"):
            of_decisions(berkeley, within=berkeley["department"][:9].to_numpy())
        with pytest.raises(ValueError, match="missing labels; .*of 4,526 rows"):
            of_decisions(berkeley, within=berkeley["department"].replace("A", None))
        with pytest.raises(ValueError, match="at most 500 levels; got 4,526"):
            of_decisions(berkeley, within=np.arange(len(berkeley)))
        lonely = of_decisions(berkeley, within=berkeley["sex"].to_numpy())
        assert "Within the levels" not in lonely.headline
        assert lonely.sections[-1].title == "Gaps within the given column"


class TestReference:
    def test_is_the_contrast_with_that_group(self):
        rng = np.random.default_rng(0)
        group = rng.choice(["a", "b", "c"], 3000)
        chosen = (rng.random(3000) < 0.3 + 0.1 * (group == "b")) * 1.0
        who = {"sensitive_features": group}
        options = {"reference": "a", "favorable": "high", "margin": 0.2}
        report = audit(chosen, chosen, **who, **options, metrics="selection_rate")
        rates = selection_rate(None, chosen, **who)
        expected = rates.contrasts(reference="a").set_index("a")
        reference, *others = report.findings[0].rows
        assert np.isnan(reference.difference)
        assert (reference.side, reference.within) == ("", False)
        names = "difference", "difference_low", "pvalue", "pvalue_corrected"
        found = [[getattr(row, name) for name in names] for row in others]
        columns = ["estimate", "ci_low", "pvalue", "pvalue_corrected"]
        np.testing.assert_array_equal(found, expected.loc[["b", "c"], columns])
        counts = [int(chosen[group == g].sum()) for g in "ba"]
        assert f"Selected more often: b ({counts[0]} of" in report.headline
        assert f"; {counts[1]} of {(group == 'a').sum():,} of a," in report.headline
        assert "Every group is shown to be within the margin" in report.headline
        assert "fair, groups are compared with a." in report.reading
        assert all(words in repr(report) for words in ("vs a", "the reference"))
        assert repr(AuditReport.from_json(report.to_json())) == repr(report)
        (failure,) = report.failures("selection_rate.gap>0.02")
        assert f"{expected.loc['b', 'estimate']:.4f} of b" in failure

    def test_holds_within_levels_too(self, berkeley):
        report = of_decisions(berkeley, within=berkeley["department"], reference="m")
        plain = of_decisions(berkeley, within=berkeley["department"])
        assert gaps_of(report) == gaps_of(plain)
        columns = data(("a", "b", "c"), n_queries=60) | {"within": np.zeros(600)}
        names = ["inter_group_accuracy", "pairwise_exposure"]
        report = audit(**columns, metrics=names, reference="b")
        found = [row[3] for row in report.sections[0].rows]
        assert found[::3] == found[1::3] == found[2::3]  # one level holds nothing fixed
        assert len(found) == 3 * (2 + 3)  # half is what is fair for the reference too

    def test_may_be_named_as_reports_show_it(self, berkeley):
        reports = [crossed(berkeley, True, reference=r) for r in (("m", "A"), "m × A")]
        assert repr(reports[0]) == repr(reports[1])

    def test_must_be_a_group(self, berkeley):
        for wrong in ("x", ["f"], {"sex": "f"}):
            with pytest.raises(ValueError, match="reference must be one of .*'f', 'm'"):
                of_decisions(berkeley, reference=wrong)
        frame = berkeley[["sex", "department"]]
        with pytest.raises(ValueError, match="of several groupings one by column"):
            of_decisions(berkeley, sensitive_features=frame, cross=False, reference="m")


def crossed(rows, cross, **options):
    groups = rows[["sex", "department"]]
    return of_decisions(rows, sensitive_features=groups, cross=cross, **options)


class TestCross:
    @pytest.mark.parametrize("cross", [False, "both"])
    def test_has_each_grouping_alone(self, berkeley, cross):
        report = crossed(berkeley, cross, impact_ratio=True)
        rows = {row.group: row for row in report.findings[0].rows}
        frame = report.to_frame().set_index("group")
        names = ["estimate", "standard_error", "difference", "pvalue"]
        for name in ("sex", "department"):
            alone = selection_rate(
                None, berkeley["admitted"], sensitive_features=berkeley[name]
            )
            gap = alone.against_rest()
            found = frame.loc[[f"{name}={label}" for label in alone.groups], names]
            of_rates = alone.estimate, alone.standard_error
            expected = np.transpose([*of_rates, gap.estimate, gap.pvalue])
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert ("f × A" in rows) == (cross == "both")
        verdict = report.findings[0]
        counts = "557 of 1,835, 30.4%; 1,198 of 2,691 of the rest, 44.5%"
        assert verdict.values_of(rows["sex=f"]) == counts
        assert verdict.values_of(rows["sex=m"]).startswith("1,198 of 2,691, 44.5%; ")
        concluded = [row.group for _, _, on in verdict.conclusions for row in on]
        assert "sex=f" in concluded
        assert "sex=m" not in concluded  # it is the rest of sex=f
        titles = [section.title for section in report.sections]
        assert len(titles) == (3 if cross else 2)
        failures = report.failures("impact_ratio<0.8")
        pairs = ["sex=f / sex=m", "department=F / department=A", "m × F / f × A"]
        for pair, failure in zip(pairs[: len(titles)], failures, strict=True):
            assert f" of {pair}," in failure
        assert AuditReport.from_json(report.to_json()).headline == report.headline

    def test_with_a_reference_for_each_column(self, berkeley, tmp_path):
        report = crossed(berkeley, "both", reference={"sex": "m", "department": "A"})
        rows = {row.group: row for row in report.findings[0].rows}
        rate = berkeley.groupby(["sex", "department"])["admitted"].mean()
        expected = rate["f", "B"] - rate["m", "A"]
        assert rows["f × B"].difference == pytest.approx(expected)
        assert np.isnan(rows["m × A"].difference)
        page = written(report, tmp_path)
        assert not any(words in page for words in ("no data", "items outside it"))
        assert "Difference from the reference" in page
        by_sex = berkeley.groupby("sex")["admitted"].mean()
        assert rows["sex=f"].difference == pytest.approx(by_sex["f"] - by_sex["m"])

    def test_tests_of_curves_are_of_each_grouping(self):
        columns = risks()
        groups = pd.DataFrame({"region": columns["sensitive_features"]})
        groups["sex"] = np.tile(["f", "m"], 1500)
        columns |= {"sensitive_features": groups, "task": "risk", "cross": False}
        titles = [section.title for section in audit(**columns).sections]
        by = [title.rpartition(", ")[2] for title in titles]
        assert by == ["by region", "by sex"]

    def test_needs_several_columns(self, berkeley):
        # Columns of truth values mark members, of whatever type the columns are.
        members = pd.get_dummies(berkeley["sex"]).astype(object)
        for groups in (berkeley["sex"], members):
            with pytest.raises(ValueError, match="cross must be True.*; got 'both'"):
                of_decisions(berkeley, sensitive_features=groups, cross="both")
        with pytest.raises(ValueError, match="cross must be"):
            crossed(berkeley, "all")


def test_out_of_fold_scores_have_them_too():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=600), "age": rng.integers(20, 70, 600)})
    sex, region = rng.choice(["f", "m"], 600), rng.choice(["n", "s"], 600)
    options = {"cross": "both", "reference": {"sex": "m", "region": "n"}}
    options |= {"within": pd.Series(X["age"] // 25, name="decade"), "threshold": 0.5}
    options["metrics"] = ["selection_rate", "intra_group_accuracy"]
    options["sensitive_features"] = pd.DataFrame({"sex": sex, "region": region})
    y = (X["x"] + rng.normal(size=600) > 0) * 1
    report = audit_cv(LogisticRegression(), X, y, **options)
    assert len(report.group_rows) == 8
    assert report.sections[0].title == "Gaps within decade"
    assert "m × n" in report.reading
