"""Try the package inside other people's tools, and write docs/ecosystem.md.

    pip install skrankfair[boost] catboost optuna optuna-integration scikit-optimize \
        dask-ml skrub imbalanced-learn feature-engine mapie skops fairlearn
    python benchmarks/ecosystem.py --write

Every cell is the outcome of a run: the tool is called with groups and queries as
columns of X, by name, and as metadata with routing on, and has to return a finite score
or prediction. A cell that is not "yes" has the first words of the error, of the tool or
ours.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import pathlib
import sys
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import sklearn
from sklearn import calibration, ensemble, feature_selection, inspection, linear_model
from sklearn import model_selection as ms
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skrankfair import audit_cv
from skrankfair.mitigation import GroupCalibratedClassifier, PairwiseFairClassifier
from skrankfair.model_selection import fairness_constrained
from skrankfair.rankers import QueryRanker
from skrankfair.scoring import get_scorer, with_errors

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "ecosystem.md"
HEADER = """
# Tools it works with

Scorers and mitigations take groups and queries from columns of X by name, or as
metadata with `sklearn.set_config(enable_metadata_routing=True)`. Each cell is the
outcome of a run of `python benchmarks/ecosystem.py --write`, which wrote this
page: *yes*, or the first words of the error. Where one of the two ways fails,
take the other one; where both do, the tool does not pass on what is needed.

| tool | version | what | columns by name | metadata |
|---|---|---|---|---|
"""
GAP = "neg_inter_group_accuracy_difference"
GRID = {"C": [0.1, 1.0]}


class Case:
    """Data, a scorer and a mitigation, told of groups by column or by metadata."""

    def __init__(self, by: str) -> None:
        rng = np.random.default_rng(0)
        n, self.metadata = 600, by == "metadata"
        query, group = np.repeat(np.arange(60), 10), rng.choice(["f", "m"], n)
        quality = rng.normal(size=n)
        self.X = pd.DataFrame({"a": quality - (group == "f")})
        self.X["b"] = quality + rng.normal(size=n)
        self.y = (quality + rng.normal(size=n) > 0).astype(int)
        self.columns = {"sensitive_features": group, "qid": query}
        self.who = {"sensitive_features": True, "qid": True}
        if not self.metadata:
            code = (group == "f").astype(float)
            self.X = self.X.assign(group=code, query=query)
            self.who = {"sensitive_features": "group", "qid": "query"}
        self.scorer = get_scorer(GAP, **self.who)
        self.cv = list(ms.GroupKFold(3).split(self.X, groups=query))

    @property
    def given(self) -> dict:
        """Metadata for `fit`, if that is how groups are told."""
        return self.columns if self.metadata else {}

    @property
    def groups(self) -> dict:
        """The groups alone, for mitigations."""
        return {k: v for k, v in self.given.items() if k == "sensitive_features"}

    def fair(self) -> GroupCalibratedClassifier:
        """A mitigation."""
        groups = self.who["sensitive_features"]
        return GroupCalibratedClassifier(
            LogisticRegression(), calibrator="isotonic", sensitive_features=groups, cv=3
        )

    def ranker(self, estimator) -> QueryRanker:
        """A ranker of another library."""
        return QueryRanker(estimator, qid=self.who["qid"])


def scored(case: Case, tool) -> float:
    """Fit a tool that scores inside; return its best score."""
    tool.fit(case.X, case.y, **case.given)
    return float(getattr(tool, "best_score_", 0.0))


def predicted(case: Case, tool, **more) -> float:
    """Fit a tool around a mitigation; return its mean prediction."""
    tool.fit(case.X, case.y, **case.groups, **more)
    return float(np.mean(tool.predict(case.X, **case.groups)))


def search(kind, case: Case, *spaces, **options) -> float:
    return scored(
        case, kind(LogisticRegression(), *spaces, scoring=case.scorer, cv=3, **options)
    )


def constrained(case: Case) -> float:
    scoring = {"ndcg": get_scorer("ndcg", qid=case.who["qid"]), "gap": case.scorer}
    refit = fairness_constrained("ndcg", at_most={"gap": 0.9}, confidence_level=0.9)
    options = {"scoring": with_errors(scoring), "refit": refit, "cv": case.cv}
    found = ms.GridSearchCV(LogisticRegression(), GRID, **options)
    found.fit(case.X, case.y, **case.given)
    return float(found.refit.table_["gap_bound"].max())


def cross_validated(case: Case) -> float:
    options = {"scoring": case.scorer, "cv": case.cv, "error_score": "raise"}
    if case.metadata:
        options["params"] = case.columns
    return ms.cross_val_score(LogisticRegression(), case.X, case.y, **options).mean()


def selection(kind, case: Case) -> float:
    return scored(case, kind(LogisticRegression(), scoring=case.scorer, cv=case.cv))


def importance(case: Case) -> float:
    model = LogisticRegression().fit(case.X, case.y)
    scoring = partial(case.scorer, **case.given)
    found = inspection.permutation_importance(
        model, case.X, case.y, scoring=scoring, n_repeats=2
    )
    return found.importances_mean.sum()


def tuned(case: Case) -> float:
    tool = ms.TunedThresholdClassifierCV(
        LogisticRegression(), scoring=case.scorer, thresholds=5, cv=case.cv
    )
    return scored(case, tool)


def optuna_search(case: Case) -> float:
    import optuna
    from optuna_integration import OptunaSearchCV

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {"C": optuna.distributions.FloatDistribution(0.1, 1)}
    return search(OptunaSearchCV, case, space, n_trials=2)


def optuna_study(case: Case) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        model = LogisticRegression(C=trial.suggest_float("C", 0.1, 1))
        params = {"params": case.columns} if case.metadata else {}
        return ms.cross_val_score(
            model, case.X, case.y, scoring=case.scorer, cv=case.cv, **params
        ).mean()

    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=2)
    return study.best_value


def skopt_search(case: Case) -> float:
    from skopt import BayesSearchCV

    return search(BayesSearchCV, case, {"C": (0.1, 1.0)}, n_iter=2)


def dask_search(case: Case) -> float:
    from dask_ml.model_selection import GridSearchCV

    return search(GridSearchCV, case, GRID, scheduler="sync")


def skrub_search(case: Case) -> float:
    from skrub import tabular_pipeline

    model = tabular_pipeline(case.fair())
    model = model.set_output(transform="pandas")
    return predicted(case, model) if case.metadata else columns_kept(case, model)


def columns_kept(case: Case, model) -> float:
    """Fit a pipeline whose transformers may rename or drop columns."""
    return float(np.mean(model.fit(case.X, case.y).predict(case.X)))


def piped(case: Case) -> float:
    model = make_pipeline(StandardScaler(), case.fair()).set_output(transform="pandas")
    return predicted(case, model)


def imblearn_pipeline(case: Case) -> float:
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import make_pipeline as make

    model = make(RandomOverSampler(random_state=0), LogisticRegression())
    options = {"scoring": case.scorer, "cv": case.cv, "error_score": "raise"}
    if case.metadata:
        options["params"] = case.columns
    return ms.cross_val_score(model, case.X, case.y, **options).mean()


def imblearn_mitigation(case: Case) -> float:
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import make_pipeline as make

    return predicted(case, make(RandomOverSampler(random_state=0), case.fair()))


def feature_engine_pipeline(case: Case) -> float:
    from feature_engine.discretisation import EqualFrequencyDiscretiser

    steps = EqualFrequencyDiscretiser(variables=["a", "b"]), case.fair()
    return predicted(case, make_pipeline(*steps))


def conformal(case: Case, model, **fit_params) -> float:
    from mapie.classification import SplitConformalClassifier

    tool = SplitConformalClassifier(model, prefit=False)
    tool.fit(case.X, case.y, fit_params=fit_params)
    tool.conformalize(case.X, case.y)
    return float(tool.predict_set(case.X)[1].mean())


def conformal_linear(case: Case) -> float:
    model = PairwiseFairClassifier(max_pairs=1000, random_state=0, **case.who)
    return conformal(case, model, **case.given)


def boosted(library: str, case: Case) -> float:
    if library == "lightgbm":
        from lightgbm import LGBMRanker

        ranker = case.ranker(LGBMRanker(n_estimators=3, verbose=-1, n_jobs=1))
    elif library == "xgboost":
        from xgboost import XGBRanker

        ranker = case.ranker(XGBRanker(n_estimators=3, n_jobs=1))
    else:
        from catboost import CatBoostRanker

        quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
        ranker = case.ranker(CatBoostRanker(iterations=3, **quiet))
    options = {"cv": case.cv, "error_score": "raise"}
    if case.metadata:
        options["params"] = {"qid": case.columns["qid"]}
    return ms.cross_val_score(ranker, case.X, case.y, **options).mean()


def fairlearn_models(case: Case) -> float:
    from fairlearn.postprocessing import ThresholdOptimizer

    model = ThresholdOptimizer(
        estimator=LogisticRegression(), predict_method="predict_proba"
    )
    if case.metadata:
        model.set_fit_request(sensitive_features=True)
        model.set_predict_request(sensitive_features=True)
    who = case.columns if case.metadata else case.who
    report = audit_cv(model, case.X, case.y, metrics="pairwise_accuracy", **who)
    return float(report.results["pairwise_accuracy"].estimate.mean())


def saved(case: Case) -> float:
    from skops import io

    tool = ms.GridSearchCV(LogisticRegression(), GRID, scoring=case.scorer, cv=3)
    tool.fit(case.X, case.y, **case.given)
    data = io.dumps(tool)
    again = io.loads(data, trusted=io.get_untrusted_types(data=data))
    return float(again.predict(case.X).mean())


Row = tuple[str, str, str, Callable[[Case], float]]
ROWS: list[Row] = [
    ("scikit-learn", "scikit-learn", "`cross_val_score`", cross_validated),
    *(
        ("scikit-learn", "scikit-learn", f"`{kind.__name__}`", call)
        for kind, call in [
            (ms.GridSearchCV, lambda c: search(ms.GridSearchCV, c, GRID)),
            (
                ms.RandomizedSearchCV,
                lambda c: search(ms.RandomizedSearchCV, c, GRID, n_iter=2),
            ),
            (ms.HalvingGridSearchCV, lambda c: search(ms.HalvingGridSearchCV, c, GRID)),
            (feature_selection.RFECV, partial(selection, feature_selection.RFECV)),
            (
                feature_selection.SequentialFeatureSelector,
                partial(selection, feature_selection.SequentialFeatureSelector),
            ),
            (
                linear_model.LogisticRegressionCV,
                lambda c: scored(
                    c, linear_model.LogisticRegressionCV(scoring=c.scorer)
                ),
            ),
            (
                linear_model.RidgeCV,
                lambda c: scored(c, linear_model.RidgeCV(scoring=c.scorer)),
            ),
            (
                ensemble.HistGradientBoostingClassifier,
                lambda c: scored(
                    c,
                    ensemble.HistGradientBoostingClassifier(
                        max_iter=2, early_stopping=True, scoring=c.scorer
                    ),
                ),
            ),
            (ms.TunedThresholdClassifierCV, tuned),
        ]
    ),
    (
        "scikit-learn",
        "scikit-learn",
        "`GridSearchCV` with `fairness_constrained`",
        constrained,
    ),
    ("scikit-learn", "scikit-learn", "`permutation_importance`", importance),
    ("scikit-learn", "scikit-learn", "a mitigation in a `Pipeline`", piped),
    *(
        ("scikit-learn", "scikit-learn", f"a mitigation in `{name}`", call)
        for name, call in [
            (
                "BaggingClassifier",
                lambda c: predicted(
                    c, ensemble.BaggingClassifier(c.fair(), n_estimators=2)
                ),
            ),
            (
                "StackingClassifier",
                lambda c: predicted(
                    c, ensemble.StackingClassifier([("fair", c.fair())])
                ),
            ),
            (
                "VotingClassifier",
                lambda c: predicted(c, ensemble.VotingClassifier([("fair", c.fair())])),
            ),
            (
                "CalibratedClassifierCV",
                lambda c: predicted(c, calibration.CalibratedClassifierCV(c.fair())),
            ),
        ]
    ),
    ("fairlearn", "fairlearn", "`ThresholdOptimizer` in `audit_cv`", fairlearn_models),
    (
        "LightGBM",
        "lightgbm",
        "`LGBMRanker` in `QueryRanker`",
        partial(boosted, "lightgbm"),
    ),
    ("XGBoost", "xgboost", "`XGBRanker` in `QueryRanker`", partial(boosted, "xgboost")),
    (
        "CatBoost",
        "catboost",
        "`CatBoostRanker` in `QueryRanker`",
        partial(boosted, "catboost"),
    ),
    ("Optuna", "optuna", "a study of `cross_val_score`", optuna_study),
    ("Optuna", "optuna", "`OptunaSearchCV`", optuna_search),
    ("scikit-optimize", "scikit-optimize", "`BayesSearchCV`", skopt_search),
    ("dask-ml", "dask-ml", "`GridSearchCV`", dask_search),
    ("skrub", "skrub", "a mitigation in `tabular_pipeline`", skrub_search),
    (
        "imbalanced-learn",
        "imbalanced-learn",
        "a resampled model, scored",
        imblearn_pipeline,
    ),
    (
        "imbalanced-learn",
        "imbalanced-learn",
        "a mitigation after a sampler",
        imblearn_mitigation,
    ),
    (
        "feature-engine",
        "feature-engine",
        "a mitigation after a discretiser",
        feature_engine_pipeline,
    ),
    (
        "MAPIE",
        "mapie",
        "`SplitConformalClassifier` of a `PairwiseFairClassifier`",
        conformal_linear,
    ),
    (
        "MAPIE",
        "mapie",
        "the same of a model that predicts with groups",
        lambda c: conformal(c, c.fair(), **c.groups),
    ),
    ("skops", "skops", "a fitted search, saved and loaded", saved),
]


def version(package: str) -> str:
    """The installed version of a package, the wheel for CPUs included."""
    for name in (package, f"{package}-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def outcome(call: Callable[[Case], float], by: str) -> str:
    """Run one cell: "yes", or how it fails."""
    routing = by == "metadata"
    try:
        with (
            sklearn.config_context(enable_metadata_routing=routing),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always")
            value = call(Case(by))
    except ImportError as error:
        return f"not importable: {error}"[:100]
    except Exception as error:  # noqa: BLE001
        words = " ".join(str(error).split()).replace("|", "/")
        return f"{type(error).__name__}: {words[:110]}" + "…" * (len(words) > 110)
    if any(str(warning.message).startswith("Scoring failed") for warning in said):
        return "a warning that scoring failed"
    return "yes" if np.isfinite(value) else "a score that is NaN"


def page() -> str:
    """The page, every row run."""
    lines = [HEADER.strip()]
    for tool, package, what, call in ROWS:
        there = version(package)
        cells = [
            outcome(call, by) if there else "not installed here"
            for by in ("column", "metadata")
        ]
        row = " | ".join([tool, there or "none", what, *cells])
        print(row, file=sys.stderr, flush=True)
        lines.append(f"| {row} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/ecosystem.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    text = page()
    if arguments.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
