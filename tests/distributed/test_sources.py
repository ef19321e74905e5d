"""Files that differ, odd data, and workers and folders that fail."""

import dask
import dask.dataframe as dd
import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from skrankfair.distributed import measure
from skrankfair.distributed._sources import typed
from skrankfair.metrics import brier_score, group_mean, pairwise_exposure
from tests.seeds import rarely

from .logs import METRICS, WHO, assert_same, written


class TestFilesThatDiffer:
    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_numbers_are_not_those_of_the_first_file(self, kind, frame, tmp_path):
        tens = frame.assign(s=(10 * frame["s"]).round(1))
        whole = tens.assign(s=np.where(tens.index < 900, tens["s"].round(), tens["s"]))
        first = whole[:900].astype({"s": int})
        # The columns of the second are in another order too.
        second = whole[900:][["y", "s", "g", "unused", "u", "q"]]
        data = written(tmp_path, first, second, kind=kind)
        results = measure(data, METRICS["inter"], n_partitions=2, **WHO)
        assert_same(results, measure(whole, METRICS["inter"], **WHO))

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    @pytest.mark.parametrize("lacking", [0, 1])
    def test_a_file_without_a_column_is_named(self, kind, lacking, frame, tmp_path):
        parts = [frame[:900], frame[900:]]
        parts[lacking] = parts[lacking].drop(columns="s")
        data = written(tmp_path, *parts, kind=kind)
        with pytest.raises(ValueError, match=rf"{lacking}\..* no column 's'; it has '"):
            measure(data, "dips", **WHO)

    def test_names_with_brackets_are_no_patterns_and_count_once(self, frame, tmp_path):
        (first, one) = (tmp_path / name for name in ("part[1].csv", "part1.csv"))
        frame.to_csv(first, index=False)
        frame[:900].to_csv(one, index=False)
        assert_same(measure(first, "dips", **WHO), measure(frame, "dips", **WHO))
        with pytest.raises(ValueError, match="data must name each file once"):
            measure([one, tmp_path / "part?.csv"], "dips", **WHO)

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_numbers_and_text(self, kind, frame, tmp_path):
        data = written(tmp_path, frame[:900], frame[900:].assign(s="text"), kind=kind)
        with pytest.raises(ValueError, match="must hold numbers, .* it has 'text'"):
            measure(data, "dips", **WHO)


def skewed():
    """Return a log of which a third is one user, with a group of few users."""
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(300), 4)
    frame = pd.DataFrame({"q": query, "u": np.where(query < 100, 0, query)})
    frame["g"] = rng.choice(["a", "b"], len(frame))
    frame.loc[(query > 270) & (np.arange(len(frame)) % 4 == 1), "g"] = "rare"
    frame["s"] = rng.random(len(frame))
    frame["y"] = rng.integers(0, 2, len(frame))
    return frame


class TestOddData:
    @pytest.mark.parametrize("kind", ["files", "dask"])
    def test_a_cluster_with_a_third_of_the_rows(self, kind, tmp_path):
        frame = skewed()
        data = dd.from_pandas(frame, npartitions=5)
        if kind == "files":
            data = written(tmp_path, frame)
        # Most of 32 parts have few clusters, or lack a group.
        n_partitions = 32 if kind == "files" else 9
        results = measure(data, METRICS["inter"], n_partitions=n_partitions, **WHO)
        # Beside such a cluster the degrees of freedom are a small difference.
        assert_same(results, measure(frame, METRICS["inter"], **WHO), of_tests=1e-9)

    def test_labels_of_mixed_types(self):
        frame = skewed()
        labels = np.array([2, "2", 2.5, True, ("a", 1)], dtype=object)
        frame["g"] = labels[np.random.default_rng(0).integers(0, 5, len(frame))]
        frame["u"] = [f"user {u}" if u % 2 else u for u in frame["u"].tolist()]
        with dask.config.set({"dataframe.convert-string": False}):
            data = dd.from_pandas(frame, npartitions=4)
            results = measure(data, METRICS["inter"], n_partitions=4, **WHO)
        whole = measure(frame, METRICS["inter"], **WHO)
        assert_same(results, whole)
        kinds = [type(group) for group in results["pairwise_accuracy"].groups]
        assert kinds == [type(group) for group in whole["pairwise_accuracy"].groups]


class TestWorkersAndDisks:
    @pytest.mark.parametrize("n_jobs", [None, *rarely(2)])
    def test_nothing_is_left_behind(self, n_jobs, frame, tmp_path):
        folder = tmp_path / "parts"
        folder.mkdir()
        data = written(tmp_path, frame)
        options = {"temp_directory": folder, "n_partitions": 3, "n_jobs": n_jobs}
        measure(data, "dips", **options, **WHO)
        assert not list(folder.iterdir())
        with pytest.raises(OSError, match="always"):
            measure(data, {"fails": _fails}, **options, **WHO)
        assert not list(folder.iterdir())


def _fails(y_true, y_score, *, sensitive_features, qid, cluster):
    raise OSError("always")


NAN = np.nan
#: Cells, and what they are as labels (None: as they are) and as numbers (None: none).
CELLS = [
    (["1.1", "1.10"], ["1.1", "1.10"], [1.1, 1.1]),
    (["7", "07"], ["7", "07"], [7, 7]),
    (["100", "1e2", "+1"], ["100", "1e2", "+1"], [100, 100, 1]),
    (["12:30", "12:30:00"], ["12:30", "12:30:00"], None),
    (["10", "9", "0"], [10, 9, 0], [10, 9, 0]),
    (["9" * 19, "1"], ["9" * 19, "1"], None),
    (["-9007199254740993", "1"], None, None),
    (["1152921504606846976 ", "-1" + "0" * 16], None, [2.0**60, -1e16]),
    (["7\n", "7"], ["7\n", "7"], [7, 7]),
    (["TRUE", "false"], [True, False], [1, 0]),
    (["yes", " No", None], ["yes", " No", None], [1, 0, NAN]),
    (["1", None], ["1", None], [1, NAN]),
    ([" .5", "5.", "-1E-3", "NA", ""], None, [0.5, 5, -0.001, NAN, NAN]),
    (["1_000"], ["1_000"], None),
    (["yes", "0.5"], ["yes", "0.5"], None),
    (["1,5", "-2", " ,5e1 ", "NA"], ["1,5", "-2", " ,5e1 ", "NA"], [1.5, -2, 5, NAN]),
    (["1,5", "2.5"], None, None),
    (["1,500", "20"], None, None),
    (["0x10"], ["0x10"], None),
]


def read(cells, engine, labels, numbers):
    """Return labels, numbers, and what is neither."""
    names = [*labels, *numbers, "as it is"]
    table = pd.DataFrame(dict.fromkeys(names, np.array(cells, dtype=object)))
    table = table.astype("string") if engine == "string" else table
    native = duckdb.connect().from_df(table) if engine == "duckdb" else table
    found = typed(nw.from_native(native).lazy(), labels, numbers).collect()
    return [[None if pd.isna(x) else x for x in found[n].to_list()] for n in names]


@pytest.mark.parametrize("engine", ["object", "string", "duckdb"])
@pytest.mark.parametrize(("cells", "labels", "as_numbers"), CELLS)
def test_cells(cells, labels, as_numbers, engine):
    numbers = {"number": "weights"}
    if as_numbers is None:
        with pytest.raises(ValueError, match="^weights (must h.* numbers|has commas)"):
            read(cells, engine, [], numbers)
        numbers = {}
    labels = labels or cells
    found, *of_numbers, as_it_is = read(cells, engine, ["label"], numbers)
    assert found == labels
    assert [*map(type, found)] == [*map(type, labels)]
    for found in of_numbers:
        np.testing.assert_array_equal(np.array(found, dtype=float), as_numbers)
    assert as_it_is == cells


@pytest.fixture(scope="module", name="late")
def _late():
    """Return a log whose first 22,000 rows say little of the rest."""
    rng, n = np.random.default_rng(0), 24_000
    late = np.arange(n) >= 22_000
    data = pd.DataFrame({"q": [f"{i // 10}" for i in range(n)]})
    data["q"] += np.where(np.arange(n) % 20 < 10, "", ".10")
    data["s"] = np.where(late, np.round(rng.random(n), 3), 0)
    data["y"] = np.where(late, np.round(rng.random(n), 2), 1)
    data["g"] = rng.choice(["1.1", "1.10", "7", "07"], n)
    return data


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv"])
def test_files_are_what_all_rows_say(late, kind, tmp_path):
    path = tmp_path / f"late.{kind}"
    late.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    metrics = [group_mean, pairwise_exposure, brier_score]
    columns = {"y_score": "s", "y_true": "y", "sensitive_features": "g", "qid": "q"}
    found, expected = (measure(data, metrics, **columns) for data in (path, late))
    for name, result in found.items():
        assert result.groups == ("07", "1.1", "1.10", "7")
        for field in ("estimate", "standard_error", "support"):
            of_all = getattr(expected[name], field)
            np.testing.assert_allclose(getattr(result, field), of_all, rtol=1e-9)


def test_lines_are_no_comments_and_quotes_are_doubled(tmp_path):
    path = tmp_path / "odd.csv"
    rows = '"#x",1\n#x,2\n"a,b",3\n"say ""x""",4\n\'a,5\n'
    path.write_text("#g,s\n" + 2 * rows)
    (mean,) = measure(path, "group_mean", y_score="s", sensitive_features="#g").values()
    expected = {"#x": 1.5, "'a": 5, "a,b": 3, 'say "x"': 4}
    assert dict(zip(mean.groups, mean.estimate.tolist(), strict=True)) == expected
