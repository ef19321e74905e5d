"""MovieLens ratings and their genres, from a package or a GroupLens archive."""

from __future__ import annotations

import csv
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from ._rdatasets import known_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RATING_DTYPES = {
    "user_id": "int32",
    "movie_id": "int32",
    "rating": "float32",
    "timestamp": "int64",
}
# What the files are parsed into: older pandas let numbers wrap around in int32.
_PARSED_DTYPES = _RATING_DTYPES | {"user_id": "int64", "movie_id": "int64"}
_CSV_RATINGS = ["userId", "movieId", "rating", "timestamp"]
_CSV_MOVIES = ["movieId", "title", "genres"]

# Where a film has no genre, the editions say so in one of these words.
_NO_GENRE = ("", "(no genres listed)", "unknown")

# The files that tell the three layouts apart, whatever the archive is called.
_LAYOUTS = {
    "csv": ("ratings.csv", "movies.csv"),
    "dat": ("ratings.dat", "movies.dat"),
    "100k": ("u.data", "u.item", "u.genre"),
}

# No file of an archive may unpack to more than this. The largest edition, ml-32m, has
# 0.9 GB of ratings and 4 MB of movies. Its text compresses to a quarter of its size,
# that of a zip bomb to a thousandth.
_LARGEST_RATINGS = 4 * 2**30
_LARGEST_TABLE = 64 * 2**20
_LARGEST_RATIO = 100

# These are raised underneath by damaged, encrypted, truncated or mistyped files.
_UNREADABLE = (
    ValueError,
    OverflowError,
    OSError,
    EOFError,
    MemoryError,
    RuntimeError,
    csv.Error,
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


class _Folder(NamedTuple):
    """A folder on disk or in an archive, and how to open one of its files."""

    name: str
    files: frozenset[str]
    open: Callable[[str], IO[bytes]]


class _MovieRow(NamedTuple):
    line: int  # of the file, to say where something is wrong
    movie_id: str
    title: str
    genres: str


def fetch_movielens(path: str | os.PathLike[str] | None = None) -> Bunch:
    """Load MovieLens ratings together with the genres of the rated movies.

    Nothing is downloaded. Without `path` the ratings come from the package
    ``rdatasets`` (100,004 ratings, an edition of ml-latest-small). With `path` they
    come from an archive of GroupLens, of any size, that you have downloaded from
    https://grouplens.org/datasets/movielens/. The package stores its data as a pickle,
    which could run any code; it is read only if its SHA-256 hash is the known one.
    Only the files below are read from an archive.

    Parameters
    ----------
    path : str or path-like, default=None
        A GroupLens zip or the folder of an unpacked one. The files may be at the top
        level or in one folder below it. These files are read:

        - ``ratings.csv`` and ``movies.csv``: ml-latest-small, ml-latest, ml-20m,
          ml-25m, ml-32m;
        - ``ratings.dat`` and ``movies.dat``: ml-1m, ml-10m;
        - ``u.data``, ``u.item`` and ``u.genre``: ml-100k.

        None reads the data of the package ``rdatasets``.

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
    A movie that the source marks as ``(no genres listed)`` (``unknown`` in ml-100k)
    belongs to no genre: its row of `genres` is all False, and there is no column for
    this mark. The names of genres are those of the source; ml-100k, ml-1m and ml-10m
    differ slightly from the others (``Children's``, no ``IMAX``).

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
    genres = _genres_by_rating(ratings, movies, origin)
    description = _DESCR.format(
        origin=origin,
        n_ratings=len(ratings),
        n_users=ratings["user_id"].nunique(),
        n_movies=len(movies),
        n_genres=genres.shape[1],
    )
    return Bunch(ratings=ratings, movies=movies, genres=genres, DESCR=description)


def _read_rdatasets() -> tuple[pd.DataFrame, pd.DataFrame, str]:
    table = known_frame(
        "dslabs/movielens",
        ", or pass as `path` an archive downloaded from "
        "https://grouplens.org/datasets/movielens/",
    )
    ratings = _as_ratings(table[_CSV_RATINGS], "dslabs/movielens")
    columns = ["movieId", "title", "year", "genres"]
    films = table[columns].drop_duplicates().sort_values("movieId", kind="stable")
    rows = (
        _MovieRow(line, str(movie), _title_with_year(title, year), genres)
        for line, (movie, title, year, genres) in enumerate(
            films.itertuples(index=False, name=None), start=1
        )
    )
    movies = _as_movies(rows, "dslabs/movielens")
    return ratings, movies, "dslabs/movielens of the Python package rdatasets"


def _title_with_year(title: object, year: float) -> str:
    if not isinstance(title, str):
        return ""
    return title if np.isnan(year) else f"{title} ({year:.0f})"


def _read_grouplens(
    path: str | os.PathLike[str],
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    with _opened(path) as folders:
        folder, layout = _find_layout(folders, path)
        read_ratings, read_movies = {
            "csv": (_csv_ratings, _csv_movies),
            "dat": (_dat_ratings, _dat_movies),
            "100k": (_u_ratings, _u_movies),
        }[layout]
        ratings = read_ratings(folder)
        movies = _as_movies(read_movies(folder), _LAYOUTS[layout][1])
    files = " and ".join(_LAYOUTS[layout])
    return ratings, movies, f"{files} of the GroupLens archive {Path(path).name}"


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[list[_Folder]]:
    """List the folder or zip and the folders right below it, the top one first."""
    try:
        source = Path(path).expanduser()
        if source.exists() and not source.is_dir() and not source.is_file():
            raise OSError("it is a pipe or a device")
        archive = None if source.is_dir() else zipfile.ZipFile(source)
    except (TypeError, *_UNREADABLE) as error:
        raise ValueError(
            "`path` must be None, an existing MovieLens zip or the folder of an "
            f"unpacked one; {path!r} cannot be opened as either: {error}."
        ) from error
    if archive is None:
        yield _folders_on_disk(source)
        return
    with archive:
        yield _folders_in_zip(archive)


def _folders_on_disk(top: Path) -> list[_Folder]:
    known = {file for files in _LAYOUTS.values() for file in files}
    try:
        entries = sorted(top.iterdir())
        below = [entry for entry in entries if entry.is_dir()]
        files = {top: {entry.name for entry in entries if entry.is_file()}}
        for folder in below:
            files[folder] = {file for file in known if (folder / file).is_file()}
    except OSError as error:
        raise ValueError(f"`path` must be a readable folder: {error}.") from error

    def opener(path: Path) -> Callable[[str], IO[bytes]]:
        return lambda file: path.joinpath(file).open("rb")

    return [
        _Folder(folder.name, frozenset(names), opener(folder))
        for folder, names in files.items()
    ]


def _folders_in_zip(archive: zipfile.ZipFile) -> list[_Folder]:
    """Sort the entries of the central directory; nothing is unpacked, no path walked.

    ``zipfile.Path`` walks the names, and some names (``//ratings.csv``) make it hang.
    """
    found: dict[str, dict[str, zipfile.ZipInfo]] = {"": {}}
    for entry in archive.infolist():
        folder, _, file = entry.filename.rpartition("/")
        if file and "/" not in folder and entry.filename.count("/") == bool(folder):
            found.setdefault(folder, {})[file] = entry

    def opener(entries: dict[str, zipfile.ZipInfo]) -> Callable[[str], IO[bytes]]:
        return lambda file: archive.open(_small_enough(entries[file]))

    return [
        _Folder(name, frozenset(found[name]), opener(found[name]))
        for name in sorted(found)
    ]


def _small_enough(entry: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Refuse a bomb by its declared size, beyond which zipfile reads nothing."""
    file = Path(entry.filename).name
    ratings = file in {files[0] for files in _LAYOUTS.values()}
    limit = _LARGEST_RATINGS if ratings else _LARGEST_TABLE
    plausible = max(_LARGEST_TABLE, _LARGEST_RATIO * entry.compress_size)
    if entry.file_size > min(limit, plausible):
        raise ValueError(
            f"it would unpack from {entry.compress_size:,} to {entry.file_size:,} "
            f"bytes, more than the {min(limit, plausible):,} that are accepted"
        )
    return entry


def _find_layout(
    folders: Sequence[_Folder], path: str | os.PathLike[str]
) -> tuple[_Folder, str]:
    """Find the folder, the top one or one below it, that holds one known layout."""
    found = _known_layouts(folders[:1]) or _known_layouts(folders[1:])
    if len(found) == 1:
        return found[0]
    if found:
        editions = ", ".join(f"{folder.name}/{_LAYOUTS[x][0]}" for folder, x in found)
        raise ValueError(
            "`path` must hold one edition of MovieLens; "
            f"{str(path)!r} holds {len(found)}: {editions}. Pass the folder of one."
        )
    known = "; ".join(" and ".join(files) for files in _LAYOUTS.values())
    names = sorted([*folders[0].files, *(folder.name for folder in folders[1:])])
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise ValueError(
        f"`path` must hold, at its top or in one folder below it, {known}; "
        f"{str(path)!r} holds {shown or 'nothing'}."
    )


def _known_layouts(folders: Sequence[_Folder]) -> list[tuple[_Folder, str]]:
    return [
        (folder, layout)
        for folder in folders
        for layout, files in _LAYOUTS.items()
        if folder.files.issuperset(files)
    ]


@contextmanager
def _reading(file: str) -> Iterator[None]:
    """Name the argument and the file in whatever goes wrong while reading it."""
    try:
        yield
    except _UNREADABLE as error:
        raise ValueError(
            "`path` must hold readable MovieLens files; "
            f"{file} cannot be read: {str(error) or type(error).__name__}"
        ) from error


def _csv_ratings(folder: _Folder) -> pd.DataFrame:
    dtypes = dict(zip(_CSV_RATINGS, _PARSED_DTYPES.values(), strict=True))
    frame = _parsed(folder, "ratings.csv", dtypes, encoding="utf-8")
    _require_columns(list(frame.columns), _CSV_RATINGS, "ratings.csv")
    return _as_ratings(frame[_CSV_RATINGS], "ratings.csv")


def _dat_ratings(folder: _Folder) -> pd.DataFrame:
    # The fast parser wants a separator of one character. Between the two colons
    # of "::" it then sees an empty field, which must be empty indeed.
    names = ["user_id", "_1", "movie_id", "_2", "rating", "_3", "timestamp"]
    gaps = dict.fromkeys(["_1", "_2", "_3"], "category")
    frame = _parsed(
        folder, "ratings.dat", _PARSED_DTYPES | gaps, sep=":", header=None, names=names
    )
    for gap in gaps:
        kinds = list(frame[gap].cat.categories)
        if kinds != [""]:
            raise ValueError(
                "`path` must hold a ratings.dat of lines like '1::1193::5::978300760'; "
                f"between two colons came {kinds[-1]!r}."
            )
    return _as_ratings(frame[list(_RATING_DTYPES)], "ratings.dat")


def _u_ratings(folder: _Folder) -> pd.DataFrame:
    options = {"sep": "\t", "header": None, "names": list(_RATING_DTYPES)}
    return _as_ratings(_parsed(folder, "u.data", _PARSED_DTYPES, **options), "u.data")


def _parsed(
    folder: _Folder, file: str, dtypes: dict[str, str], **options: Any
) -> pd.DataFrame:
    """Parse a file of ratings with the fast parser, straight into narrow columns."""
    overflow = np.errstate(over="ignore")  # infinite ratings are found later
    with _reading(file), overflow, folder.open(file) as stream:
        return pd.read_csv(stream, dtype=dtypes, na_filter=False, **options)


def _as_ratings(frame: pd.DataFrame, file: str) -> pd.DataFrame:
    """Give the four columns their names and types, and check what they hold."""
    if not isinstance(frame.index, pd.RangeIndex):
        # If every line has a field too many, pandas takes the first for row labels.
        raise ValueError(
            f"`path` must hold a {file} of 4 fields per line; its lines have more."
        )
    if frame.empty:
        raise ValueError(f"`path` must hold ratings; {file} has none.")
    frame = frame.set_axis(list(_RATING_DTYPES), axis=1)
    for name in ("user_id", "movie_id"):
        _require_int32(frame[name].to_numpy(), file)
    frame = frame.astype(_RATING_DTYPES)
    bad = int((~np.isfinite(frame["rating"].to_numpy())).sum())
    if bad:
        raise ValueError(f"`path` must hold finite ratings; {file} has {bad} others.")
    return frame


def _require_int32(ids: NDArray[Any], file: str) -> None:
    if ids.min() < 0 or ids.max() > np.iinfo(np.int32).max:
        raise ValueError(
            "`path` must hold ids between 0 and 2147483647; those of "
            f"{file} go from {ids.min()} to {ids.max()}."
        )


def _require_columns(columns: list[str], needed: list[str], file: str) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise ValueError(
            f"`path` must hold a {file} with the columns {', '.join(needed)}; it lacks "
            f"{', '.join(missing)} and has {', '.join(map(str, columns)) or 'none'}."
        )


def _text(folder: _Folder, file: str, *encodings: str) -> str:
    """Read a small text file by the first encoding that fits."""
    with _reading(file), folder.open(file) as stream:
        content = stream.read()
        for encoding in encodings[:-1]:
            with suppress(UnicodeDecodeError):
                return content.decode(encoding)
        return content.decode(encodings[-1])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, and their numbers."""
    # str.splitlines would also split at characters that titles may hold.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _csv_movies(folder: _Folder) -> Iterator[_MovieRow]:
    """Read movies.csv strictly: an unquoted comma would move the genres."""
    file = "movies.csv"
    reader = csv.reader(
        io.StringIO(_text(folder, file, "utf-8-sig"), newline=""), strict=True
    )
    with _reading(file):
        lines = [(reader.line_num, fields) for fields in reader if fields]
    header = lines[0][1] if lines else []
    _require_columns(header, _CSV_MOVIES, file)
    places = [header.index(name) for name in _CSV_MOVIES]
    for number, fields in lines[1:]:
        if len(fields) != len(header):
            raise _bad_line(file, number, len(header), len(fields))
        movie, title, genres = (fields[place] for place in places)
        yield _MovieRow(number, movie, title, genres)


def _dat_movies(folder: _Folder) -> Iterator[_MovieRow]:
    # ml-10m is in UTF-8, ml-1m in Latin-1, which decodes anything: it comes last.
    for number, line in _lines(_text(folder, "movies.dat", "utf-8", "latin-1")):
        fields = line.split("::")
        if len(fields) < 3:
            raise _bad_line("movies.dat", number, 3, len(fields))
        yield _MovieRow(number, fields[0], "::".join(fields[1:-1]), fields[-1])


def _u_movies(folder: _Folder) -> Iterator[_MovieRow]:
    listed = _lines(_text(folder, "u.genre", "latin-1"))
    names = [line.split("|")[0] for _, line in listed]
    width = 5 + len(names)
    for number, line in _lines(_text(folder, "u.item", "latin-1")):
        fields = line.split("|")
        if len(fields) != width:
            raise _bad_line("u.item", number, width, len(fields))
        flags = fields[5:]
        genres = [name for name, flag in zip(names, flags, strict=True) if flag == "1"]
        yield _MovieRow(number, fields[0], fields[1], "|".join(genres))


def _bad_line(file: str, number: int, expected: int, came: int) -> ValueError:
    return ValueError(
        f"`path` must hold a {file} of {expected} fields per line; line {number} has "
        f"{came}."
    )


def _as_movies(rows: Iterable[_MovieRow], file: str) -> pd.DataFrame:
    """Collect the movies into a table; the ids must be integers and unique."""
    rows = list(rows)
    ids = []
    for row in rows:
        try:
            ids.append(int(row.movie_id))
        except ValueError as error:
            raise ValueError(
                f"`path` must hold a {file} with an integer movie id in each line; "
                f"line {row.line} has {row.movie_id!r}."
            ) from error
    _require_int32(np.array(ids or [0]), file)
    texts = {name: [getattr(row, name) for row in rows] for name in ("title", "genres")}
    movies = pd.DataFrame({"movie_id": np.array(ids, dtype=np.int32), **texts})
    twice = movies["movie_id"][movies["movie_id"].duplicated()]
    if len(twice):
        raise ValueError(
            f"`path` must hold a {file} with each movie once; {len(twice)} lines "
            f"repeat one, the first of them movie {twice.iloc[0]}."
        )
    return movies


def _genres_by_rating(
    ratings: pd.DataFrame, movies: pd.DataFrame, origin: str
) -> pd.DataFrame:
    """Membership of each rating's movie in each genre, rows as in `ratings`."""
    names, by_movie = _genres_by_movie(movies["genres"])
    rows = pd.Index(movies["movie_id"]).get_indexer(ratings["movie_id"])
    unknown = rows < 0
    if unknown.any():
        raise ValueError(
            "`path` must hold ratings of the movies in its table of movies only; in "
            f"{origin} {int(unknown.sum())} ratings are of others, the first of them "
            f"of movie {ratings['movie_id'].iloc[int(unknown.argmax())]}."
        )
    # copy=False: pandas would otherwise copy the largest array there is.
    return pd.DataFrame(by_movie.take(rows, axis=0), columns=names, copy=False)


def _genres_by_movie(texts: Iterable[str]) -> tuple[list[str], NDArray[np.bool_]]:
    """Sorted genre names, and the membership of each movie in them."""
    sets = [set(text.strip().split("|")).difference(_NO_GENRE) for text in texts]
    names = sorted(set[str]().union(*sets))
    column = {name: j for j, name in enumerate(names)}
    member = np.zeros((len(sets), len(names)), dtype=bool)
    for row, own in zip(member, sets, strict=True):
        row[[column[name] for name in own]] = True
    return names, member
