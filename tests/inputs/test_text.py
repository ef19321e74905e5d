"""What the text of files says, by one rule for frames in memory and for DuckDB."""

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from skrankfair._inputs.text import typed
from skrankfair.distributed import measure
from skrankfair.metrics import brier_score, group_mean, pairwise_exposure

NAN = np.nan
#: Cells, and what they are as labels and as numbers; None where they are none.
CELLS = [
    (["1.1", "1.10"], ["1.1", "1.10"], [1.1, 1.1]),
    (["7", "07"], ["7", "07"], [7, 7]),
    (["100", "1e2", "+1"], ["100", "1e2", "+1"], [100, 100, 1]),
    (["12:30", "12:30:00"], ["12:30", "12:30:00"], None),
    (["10", "9", "0"], [10, 9, 0], [10, 9, 0]),
    (["9" * 19, "1"], ["9" * 19, "1"], [1e19, 1]),
    (["7\n", "7"], ["7\n", "7"], [7, 7]),
    (["TRUE", "false"], [True, False], [1, 0]),
    (["yes", " No", None], ["yes", " No", None], [1, 0, NAN]),
    (["1", None], ["1", None], [1, NAN]),
    (
        [" .5", "5.", "-1E-3", "NA", ""],
        [" .5", "5.", "-1E-3", "NA", ""],
        [0.5, 5, -0.001, NAN, NAN],
    ),
    (["1_000"], ["1_000"], None),
    (["yes", "0.5"], ["yes", "0.5"], None),
    (["1,5"], ["1,5"], None),
    (["0x10"], ["0x10"], None),
]


def read(cells, engine, labels, numbers):
    table = pd.DataFrame({"c": np.array(cells, dtype=object)})
    table = table.astype({"c": "string"}) if engine == "string" else table
    native = duckdb.connect().from_df(table) if engine == "duckdb" else table
    found = typed(nw.from_native(native).lazy(), labels, numbers).collect()
    return [None if pd.isna(x) else x for x in found["c"].to_list()]


@pytest.mark.parametrize("engine", ["object", "string", "duckdb"])
@pytest.mark.parametrize(("cells", "labels", "as_numbers"), CELLS)
def test_cells(cells, labels, as_numbers, engine):
    found = read(cells, engine, ["c"], {})
    assert found == labels
    assert [*map(type, found)] == [*map(type, labels)]
    if as_numbers is None:
        with pytest.raises(ValueError, match="^weights must hold numbers"):
            read(cells, engine, [], {"c": "weights"})
    else:
        found = read(cells, engine, [], {"c": "weights"})
        np.testing.assert_array_equal(np.array(found, dtype=float), as_numbers)
    assert read(cells, engine, [], {}) == cells


@pytest.fixture(scope="module", name="late")
def _late():
    """Return a log whose first 30,000 rows say little of the rest."""
    rng, n = np.random.default_rng(0), 40_000
    late = np.arange(n) >= 30_000
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
            np.testing.assert_allclose(
                getattr(result, field), getattr(expected[name], field), rtol=1e-9
            )


def test_lines_are_no_comments_and_quotes_are_doubled(tmp_path):
    path = tmp_path / "odd.csv"
    rows = '"#x",1\n#x,2\n"a,b",3\n"say ""x""",4\n\'a,5\n'
    path.write_text("#g,s\n" + 2 * rows)
    result = measure(path, "group_mean", y_score="s", sensitive_features="#g")
    (mean,) = result.values()
    assert dict(zip(mean.groups, mean.estimate.tolist(), strict=True)) == {
        "#x": 1.5,
        "'a": 5,
        "a,b": 3,
        'say "x"': 4,
    }
