"""Draw the two images of the README anew.

Run ``python benchmarks/readme_images.py`` in the root of the repository, with
``.[demo]`` installed and chromium on the path. It writes docs/_static/report.png, the
first screen of the page that ``skrankfair demo --html`` writes, and
docs/_static/curves.png.
"""

import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skrankfair.datasets import fetch_rdataset
from skrankfair.display import CalibrationByGroupDisplay

FOLDER = Path(__file__).parents[1] / "docs" / "_static"


def save(path, name):
    """Write an image with 32 colours, which text and flat areas need."""
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(32, dither=Image.Dither.NONE)
        few.save(FOLDER / name, optimize=True)


def draw_report(folder):
    """Take a screenshot of the top of the report of the demo."""
    page, image = folder / "report.html", folder / "report.png"
    subprocess.run(["skrankfair", "demo", "--html", page], check=True)
    options = ["--headless", "--no-sandbox", "--hide-scrollbars"]
    options += ["--window-size=1100,760", f"--screenshot={image}"]
    subprocess.run(["chromium", *options, page.as_uri()], check=True)
    save(image, "report.png")


def draw_curves(folder):
    """Draw how often people were held after an arrest, by score and colour."""
    frame = fetch_rdataset("carData/Arrests")
    held = (frame["released"] == "No") * 1
    known = frame[["year", "age", "employed", "citizen", "checks"]]
    X = pd.get_dummies(known, drop_first=True).astype(float)
    model = LogisticRegression(max_iter=1000)
    score = cross_val_predict(model, X, held, cv=5, method="predict_proba")[:, 1]
    who = {"sensitive_features": frame["colour"]}
    CalibrationByGroupDisplay.from_predictions(held, score, **who)
    figure = plt.gcf()
    figure.set_size_inches(7.4, 4.4)
    figure.savefig(folder / "curves.png", dpi=150, bbox_inches="tight")
    save(folder / "curves.png", "curves.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        draw_report(Path(name))
        draw_curves(Path(name))
