"""Data of audits, and pages as a browser reads them."""

from html.parser import HTMLParser

import numpy as np

from skrankfair._reports.catalog import catalog

#: The metrics of the audit of a ranking, without those on request.
NAMES = tuple(
    metric.name
    for metric in catalog().values()
    if "ranking" in metric.tasks and metric.cut != "required"
    if "ranking" not in metric.on_request
)


def data(groups=("f", "m"), n_queries=150, bias=0.5, seed=0):
    """Return columns of a ranking that undervalues the first group."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 10)
    codes = rng.integers(len(groups), size=query.size)
    labels = np.empty(len(groups), dtype=object)
    labels[:] = groups
    quality = rng.normal(size=query.size)
    return {
        "y_true": quality + rng.normal(size=query.size) > 0,
        "y_score": quality - bias * (codes == 0),
        "sensitive_features": labels[codes],
        "qid": query,
    }


def risks(bias=0.1, base=0.0, n_rows=3000):
    """Return a risk score that is too high for "b" by `bias`."""
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], n_rows)
    chance = rng.uniform(0.05, 0.75, n_rows) + base * (group == "b")
    return {
        "y_true": (rng.random(n_rows) < chance).astype(float),
        "y_score": np.clip(chance + bias * (group == "b"), 0, 1),
        "sensitive_features": group,
    }


def by_name(report):
    """Return the findings of a report by the names of metrics."""
    return {finding.metric.name: finding for finding in report.findings}


def written(report, folder, **options):
    """Return the text of the page of a report."""
    return report.to_html(folder / "page.html", **options).read_text(encoding="utf-8")


class Page(HTMLParser):
    """Collect the tags, attributes, ids and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)
