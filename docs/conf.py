"""Configuration of the documentation; everything it needs is installed, not fetched."""

import re
from importlib.metadata import version as version_of

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.docutils import SphinxDirective

project = "skrankfair"
author = "skrankfair developers"
copyright = "2026, skrankfair developers"  # noqa: A001  (Sphinx's name)
version = release = version_of("skrankfair")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
exclude_patterns = ["_build", "_inventories", "examples", "auto_examples/*.ipynb"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# Docstrings of all that the reference lists are checked while it is built.
numpydoc_validation_checks = {
    "all",  # except
    "ES01",  # a summary may say it all
    "EX01",  # tests/test_public_api.py asks functions for examples
    "GL01",  # the summary starts on the first line
    "PR07",  # a name and a type may say it all
    "RT02",  # a returned value may have a name
    "RT03",
    "SA01",  # nothing related, nothing to see
    "SS05",  # a quantity is a noun
}
numpydoc_validation_exclude = {
    r"UndefinedMetricWarning",  # scikit-learn's
    # Results are made by functions; their docstrings list attributes.
    r"\.(AuditReport|ChangeReport|ConfidenceInterval|Estimate|GroupEstimates|GroupTest)$",
    r"\.(Alarm|EquivalenceTest|Plan|PowerCurve|RequiredSize)$",
    r"\.(EqualizedOdds|MatchedPairCurve|OutcomeInequalityTest)$",
    r"\.(MetricRecommendation|MonotonicityTest)$",
    r"\.(FairnessConstrained|FairnessScore|FairnessScorer|SmoothCurve)$",
    r"\.(MarginalOutcomeTest|PredictiveParityTest|PrefixTest|ScoreOrderTest)$",
    r"\.(DrawnPairs|MitigationReport|ObjectiveParity|PairwisePenalty)$",
    r"\.ConfidenceInterval\.",
    r"Report\.(settings|texts)$",  # for the pages that reports write
    r"\.(as_gap|as_pilot)$",  # for tests and plans
}
# The list of names is kept here, since the build asks nothing of the network.
intersphinx_mapping = {
    "sklearn": ("https://scikit-learn.org/stable/", "_inventories/scikit_learn.inv")
}
extlinks = {"doi": ("https://doi.org/%s", "doi:%s")}
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "subsection_order": [
        f"examples/{name}" for name in ("measure", "scores", "tune", "fix", "plan")
    ],
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (480, 320),
    "abort_on_example_error": True,
    "min_reported_time": 10_000,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "backreferences_dir": None,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skrankfair {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
# Pages without pages below them have nothing to show beside them.
html_sidebars = {
    page: []
    for page in (
        *("installation", "quickstart", "which_metric", "reading_a_result", "glossary"),
        *("faq", "ecosystem", "validity", "decide", "performance", "contributing"),
        *("changelog", "reporting", "from_aif360", "speed"),
    )
}
html_theme_options = {
    "navigation_with_keys": False,
    # Quick start, user guide, examples, API and tutorials; the others are below "More".
    "header_links_before_dropdown": 5,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Formulas become MathML, which browsers draw without a script from elsewhere.
html_math_renderer = "mathml"


def visit_math(translator, node):
    """Write an inline formula."""
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_displaymath(translator, node):
    """Write a formula on lines of its own."""
    mathml = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="formula">{mathml}</div>')
    raise nodes.SkipNode


class ScorerTable(SphinxDirective):
    """The scorers by name, from the one table that there is."""

    numbers = {  # noqa: RUF012  (docutils reads class attributes)
        None: "its value; 1 is best",
        "difference": "largest minus smallest group, negated; 0 is best",
        "l1": "sum of the distances from the fair value, negated; 0 is best",
        "max_abs": "largest distance from the fair value, negated; 0 is best",
        "ratio": "smallest over largest group; 1 is best",
        "worst": "the group that is worst off; a loss negated",
    }

    def run(self):
        """Return a table of three columns."""
        from skrankfair.scoring._scorer import SCORERS

        lines = [".. list-table::", "   :header-rows: 1", ""]
        rows = [("Name", "Metric", "Number")]
        for name, (metric, options, disparity) in sorted(SCORERS.items()):
            given = "".join(
                f", ``{key}={value!r}``"
                for key, value in options.items()
                if key != "response_method"
            )
            measure = f"`~skrankfair.metrics.{metric.__name__}`{given}"
            rows.append((f"``{name}``", measure, self.numbers[disparity]))
        for cells in rows:
            first, *others = cells
            lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
        return self.parse_text_to_nodes("\n".join(lines))


def skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator, with its own references."""
    return skip or bool(re.fullmatch(r"get_metadata_routing|set_\w+_request", name))


def setup(app):
    """Register the formula renderer, the table of scorers and what is left out."""
    app.connect("autodoc-skip-member", skip_member)
    app.add_directive("scorer-table", ScorerTable)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
