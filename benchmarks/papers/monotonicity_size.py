"""How often the monotonicity test rejects: size and power, lists that copy too.

``monotonicity_size.py [--replications 1000] [--folder DIR]`` draws rankings of ten
items, four of them protected, and tests each draw at 5% by chi-square and by the
bootstrap, with the direction chosen by the data (auto) and with that of the law given.
The lists of a panel copy from each other: their scores share four fifths of their
variance, and the bootstrap is told so by ``cluster``. The table goes into
docs/user_guide/advantage.rst and into monotonicity_size.csv in the folder.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from skrankfair._estimates.formatting import text_table
from skrankfair.inference import monotonicity_test

N_ITEMS, N_MEMBERS, N_RESAMPLES = 10, 4, 199


def fair(scores: np.ndarray) -> None:
    """Leave the scores as they are: the same share everywhere."""


def one_step(scores: np.ndarray) -> None:
    """Put three members and two others into the first five places: 60%, then 20%."""
    scores[..., [0, 1, 2, 4, 5]] += 100


def slope(scores: np.ndarray) -> None:
    """Add to the scores of members: their share falls from place to place."""
    scores[..., :N_MEMBERS] += 0.5


def reserved(scores: np.ndarray) -> None:
    """Reserve the first two places for others; below, members have an advantage."""
    scores[..., N_MEMBERS : N_MEMBERS + 2] += 100
    scores[..., :N_MEMBERS] += 1


def bump(scores: np.ndarray) -> None:
    """Crowd members in the middle."""
    scores[..., :N_MEMBERS] *= 0.5


#: Law, whether it is monotone, panels, lists of a panel.
LAWS: tuple[tuple[Callable[[np.ndarray], None], bool, int, int], ...] = (
    (fair, True, 50, 1),
    (fair, True, 200, 1),
    (fair, True, 40, 5),
    (fair, True, 20, 10),
    (one_step, True, 100, 1),
    (one_step, True, 40, 5),
    (slope, True, 100, 1),
    (slope, True, 40, 5),
    (reserved, False, 50, 1),
    (reserved, False, 40, 5),
    (bump, False, 50, 1),
    (bump, False, 40, 5),
)


def draw(
    law: Callable[[np.ndarray], None],
    n_panels: int,
    n_lists: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the columns of a test of rankings by this law."""
    scores = rng.normal(size=(n_panels, 1, N_ITEMS))
    scores = scores + 0.5 * rng.normal(size=(n_panels, n_lists, N_ITEMS))
    law(scores)
    qid = np.repeat(np.arange(n_panels * n_lists), N_ITEMS)
    return {
        "y_score": scores.ravel(),
        "sensitive_features": np.tile(
            np.arange(N_ITEMS) < N_MEMBERS, n_panels * n_lists
        ),
        "qid": qid,
        "cluster": qid // n_lists,
        "group": True,
    }


def rejected(
    law: Callable[[np.ndarray], None], n_panels: int, n_lists: int, n_replications: int
) -> np.ndarray:
    """Return how often each test rejects: chi-square and bootstrap, auto and given."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n_replications):
        columns = draw(law, n_panels, n_lists, rng)
        found.append(
            [
                monotonicity_test(
                    **columns,
                    increasing=increasing,
                    method=method,
                    n_resamples=N_RESAMPLES,
                    random_state=rng,
                ).pvalue
                <= 0.05
                for increasing in ("auto", False)
                for method in ("chi2", "bootstrap")
            ]
        )
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    header = ["law", "monotone", "rankings", "auto: chi2", "bootstrap", "given: chi2"]
    header.append("given: bootstrap")
    rows = []
    for law, monotone, n_panels, n_lists in LAWS:
        rates = rejected(law, n_panels, n_lists, options.replications)
        name = f"{n_panels} panels of {n_lists}" if n_lists > 1 else f"{n_panels} lists"
        start = [law.__name__, "yes" if monotone else "no", name]
        rows.append([*start, *(f"{rate:.1%}" for rate in rates)])
        print(*rows[-1], flush=True)
    print(f"\nRejected at 5%, {options.replications} replications")
    print(text_table(header, rows))
    frame = pd.DataFrame(rows, columns=header)
    frame.to_csv(options.folder / "monotonicity_size.csv", index=False)


if __name__ == "__main__":
    main()
