"""MovieLens ratings and their genres, from a package or a GroupLens archive."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from ._rdatasets import known_frame

_RATINGS, _MOVIES = "ratings.csv", "movies.csv"
# Older pandas let numbers wrap around in int32, so ids are narrowed when checked.
_RATING_DTYPES = {
    "userId": "int64",
    "movieId": "int64",
    "rating": "float32",
    "timestamp": "int64",
}
_MOVIE_DTYPES = {"movieId": "int64", "title": str, "genres": str}
# Where a film has no genre, the sources say so in one of these words.
_NO_GENRE = ["", "(no genres listed)"]

# No file of an archive may unpack to more than this. The largest edition, ml-32m, has
# 0.9 GB of ratings and 4 MB of movies. Its text compresses to a quarter of its size,
# that of a zip bomb to a thousandth.
_LARGEST = {_RATINGS: 4 * 2**30, _MOVIES: 64 * 2**20}
_LARGEST_RATIO = 100

# These are raised underneath by damaged, encrypted, truncated or mistyped files.
_UNREADABLE = (
    ValueError,
    OverflowError,
    OSError,
    EOFError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)

_DESCR = """\
MovieLens
=========

Ratings of movies by users of the recommender https://movielens.org, with the
time of each rating and the genres of each movie. A movie may have several
genres or none.

Source: {origin}
Ratings: {n_ratings:,}
Users: {n_users:,}
Movies: {n_movies:,}
Genres: {n_genres}

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
        If a file of a zip would unpack to more than 4 GiB (ratings) or 64 MiB (any
        other), or to more than 64 MiB and 100 times its compressed size. If the data
        in the package ``rdatasets`` are not the known ones.
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
    for table, names in ((ratings, ("user_id", "movie_id")), (movies, ("movie_id",))):
        for name in names:
            table[name] = _narrow(table[name], name)
    if not np.isfinite(ratings["rating"]).all():
        raise ValueError(f"`path` must hold finite ratings; {origin} has others.")
    twice = movies["movie_id"][movies["movie_id"].duplicated()]
    if len(twice):
        raise ValueError(
            f"`path` must hold each movie once; {origin} has {len(twice)} rows that "
            f"repeat one, the first of them movie {twice.iloc[0]}."
        )
    rows = pd.Index(movies["movie_id"]).get_indexer(ratings["movie_id"])
    if (rows < 0).any():
        raise ValueError(
            "`path` must hold ratings of the movies in its table of movies only; in "
            f"{origin} {int((rows < 0).sum())} ratings are of others, the first of "
            f"them of movie {ratings['movie_id'].iloc[int((rows < 0).argmax())]}."
        )
    by_movie = movies["genres"].str.strip().str.get_dummies("|").astype(bool)
    by_movie = by_movie.drop(columns=_NO_GENRE, errors="ignore")
    # copy=False: pandas would otherwise copy the largest array there is.
    genres = pd.DataFrame(
        by_movie.to_numpy().take(rows, axis=0), columns=list(by_movie), copy=False
    )
    description = _DESCR.format(
        origin=origin,
        n_ratings=len(ratings),
        n_users=ratings["user_id"].nunique(),
        n_movies=len(movies),
        n_genres=genres.shape[1],
    )
    return Bunch(ratings=ratings, movies=movies, genres=genres, DESCR=description)


def _narrow(ids: pd.Series[Any], name: str) -> pd.Series[Any]:
    """Return ids as int32, or raise a ValueError for others."""
    if len(ids) and (ids.min() < 0 or ids.max() > np.iinfo(np.int32).max):
        raise ValueError(
            f"`path` must hold ids between 0 and 2147483647; {name} goes from "
            f"{ids.min()} to {ids.max()}."
        )
    return ids.astype("int32")


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
    movies["genres"] = movies["genres"].astype(str)
    ratings = table[[*_RATING_DTYPES]].astype(_RATING_DTYPES)
    return ratings, movies, "dslabs/movielens of the Python package rdatasets"


def _read_grouplens(
    path: str | os.PathLike[str],
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Read the two files of a folder or a zip; a ValueError names what is wrong."""
    with ExitStack() as stack:
        try:
            source = Path(path).expanduser()
            if source.is_dir():
                names = [
                    file.relative_to(source).as_posix()
                    for name in _LARGEST
                    for file in (*source.glob(name), *source.glob(f"*/{name}"))
                ]

                def opened(name: str) -> IO[bytes]:
                    return (source / name).open("rb")

            else:
                if source.exists() and not source.is_file():
                    raise OSError("it is a pipe or a device")
                archive = stack.enter_context(zipfile.ZipFile(source))
                names = archive.namelist()

                def opened(name: str) -> IO[bytes]:
                    return archive.open(_small_enough(archive.getinfo(name)))

        except (TypeError, *_UNREADABLE) as error:
            raise ValueError(
                "`path` must be None, an existing MovieLens zip or the folder of an "
                f"unpacked one; {path!r} cannot be opened as either: {error}."
            ) from error
        folder = _folder_of(names, path)
        ratings = _read(opened, folder + _RATINGS, _RATING_DTYPES)
        movies = _read(opened, folder + _MOVIES, _MOVIE_DTYPES)
    return ratings, movies, f"the GroupLens archive {Path(path).name}"


def _folder_of(names: Iterable[str], path: Any) -> str:
    """Return the beginning of the names of the two files, at the top or one below."""
    files = {name for name in names if name.count("/") < 2 and name[0] != "/"}
    folders = {name.rpartition("/")[0] for name in files}
    starts = [f"{folder}/" if folder else "" for folder in sorted(folders)]
    both = [s for s in starts if files >= {s + _RATINGS, s + _MOVIES}]
    if not both:
        raise ValueError(
            f"`path` must hold, at its top or in one folder below it, {_RATINGS} and "
            f"{_MOVIES} of MovieLens (ml-latest-small, ml-latest, ml-20m, ml-25m or "
            f"ml-32m); {str(path)!r} does not."
        )
    if both[0] and len(both) > 1:
        raise ValueError(
            f"`path` must hold one edition of MovieLens; {str(path)!r} holds "
            f"{len(both)}: {', '.join(both)}. Pass the folder of one."
        )
    return both[0]


def _small_enough(entry: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Refuse a bomb by its declared size, beyond which zipfile reads nothing."""
    plausible = max(_LARGEST[_MOVIES], _LARGEST_RATIO * entry.compress_size)
    limit = min(_LARGEST[Path(entry.filename).name], plausible)
    if entry.file_size > limit:
        raise ValueError(
            f"it would unpack from {entry.compress_size:,} to {entry.file_size:,} "
            f"bytes, more than the {limit:,} that are accepted"
        )
    return entry


def _read(
    opened: Callable[[str], IO[bytes]], name: str, dtypes: dict[str, Any]
) -> pd.DataFrame:
    """Return some columns of a CSV file, or raise a ValueError that names it."""
    file = Path(name).name
    try:
        # Infinite ratings are found later.
        with np.errstate(over="ignore"), opened(name) as stream:
            frame = pd.read_csv(
                stream, dtype=dtypes, na_filter=False, encoding="utf-8-sig"
            )
    except _UNREADABLE as error:
        raise ValueError(
            "`path` must hold readable MovieLens files; "
            f"{file} cannot be read: {str(error) or type(error).__name__}"
        ) from error
    missing = [column for column in dtypes if column not in frame.columns]
    # If every line has a field too many, pandas takes the first for row labels.
    if missing or (len(frame) and not isinstance(frame.index, pd.RangeIndex)):
        raise ValueError(
            f"`path` must hold a {file} with the columns {', '.join(dtypes)}, and "
            f"lines of as many fields; it has {', '.join(map(str, frame.columns))}."
        )
    return frame[[*dtypes]]
