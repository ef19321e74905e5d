"""Files that differ, odd data, and workers and folders that fail."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from skrankfair.distributed import measure
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
        expected = measure(whole, METRICS["inter"], **WHO)
        assert_same(results, expected)

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    @pytest.mark.parametrize("lacking", [0, 1])
    def test_a_file_without_a_column_is_named(self, kind, lacking, frame, tmp_path):
        parts = [frame[:900], frame[900:]]
        parts[lacking] = parts[lacking].drop(columns="s")
        data = written(tmp_path, *parts, kind=kind)
        with pytest.raises(ValueError, match=rf"{lacking}\..* has no column 's'"):
            measure(data, "dips", **WHO)

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_numbers_and_text(self, kind, frame, tmp_path):
        other = frame[900:].assign(s="text")
        data = written(tmp_path, frame[:900], other, kind=kind)
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
        # Most of 64 parts have few clusters, or lack a group.
        n_partitions = 64 if kind == "files" else 9
        results = measure(data, METRICS["inter"], n_partitions=n_partitions, **WHO)
        # Beside such a cluster the degrees of freedom are a small difference.
        whole = measure(frame, METRICS["inter"], **WHO)
        assert_same(results, whole, of_tests=1e-9)

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
