"""What the tests of the command line share: a file of scores, and ways to run it."""

import json

import numpy as np
import pandas as pd

from skrankfair.__main__ import main

SCORED = ["--y-true", "clicked", "--y-score", "score"]
REQUIRED = [*SCORED, "--sensitive-features", "region"]
WHO = [*REQUIRED, "--qid", "session"]
FAST = [*WHO, "--metrics", "inter_group_accuracy"]


def frame(n_queries=60):
    """Return rows of a log, in which one group is called NA and is underranked."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(n_queries), 10)
    quality = rng.normal(size=query.size)
    region = rng.choice(["NA", "south"], size=query.size)
    return pd.DataFrame(
        {
            "session": query,
            "user": query // 2,
            "region": region,
            "clicked": (quality + rng.normal(size=query.size) > 0).astype(int),
            # Whole numbers, which every parser reads exactly.
            "score": np.round(10_000 * (quality - (region == "NA"))),
            "watched": rng.integers(10_000, size=query.size).astype(float),
            "drama": rng.random(query.size) < 0.5,
            "comedy": rng.random(query.size) < 0.3,
            "code": rng.choice(["007", "12"], size=query.size),
        }
    )


def columns_of(data):
    """Return the columns of `WHO` as arguments of `audit`."""
    names = ("clicked", "score", "region", "session")
    arguments = ("y_true", "y_score", "sensitive_features", "qid")
    return {a: data[name] for a, name in zip(arguments, names, strict=True)}


def numbers(arguments, tmp_path):
    """Return what a run writes as JSON, without the report that is stored with it."""
    path = tmp_path / "numbers.json"
    assert main([*arguments, "--json", str(path)]) == 0
    content = json.loads(path.read_text(encoding="utf-8"))
    content.pop("stored", None)  # of an audit
    if "provenance" in content:
        assert content.pop("provenance")["command"].startswith("skrankfair ")
    return content


def complaint(arguments, capsys):
    """Return the one line that wrong input ends in."""
    capsys.readouterr()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("skrankfair: ")
    return line
