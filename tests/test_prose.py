"""Prose in the package and the documentation is written in plain, whole phrases."""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    *(ROOT / "skrankfair").rglob("*.py"),
    *(ROOT / "skrankfair").rglob("*.jinja"),
    *(ROOT / "docs" / "user_guide").rglob("*.rst"),
    *(ROOT / "docs" / "examples").rglob("*.py"),
    *(ROOT / "docs").glob("*.*"),
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
]
COUNTED = "byte|cell|column|field|line|number|pair|point|row|test|value"
UNIT = (
    "bin|candidate|cluster|column|contrast|fold|group|item|line|list|metric|moment|"
    "movie|name|objective|pair|person|position|query|rating|row|sample|score|threshold|"
    "unit|user"
)
CLIPPED = [  # a pattern, a phrase that it finds, and what to write instead
    (rf"\b(a|one) ({COUNTED}) an? ({UNIT})\b", "a row a group", "one row per group"),
    (rf"\bone an? ({UNIT})\b", "one a fold", "one per fold"),
    (rf"\b({COUNTED})s an? ({UNIT})\b", "88 bytes a row", "88 bytes per row"),
    (r"\bless the (rest|smallest|other)\b", "less the rest", "minus the rest"),
    (r"\bgroup \d less\b", "group 1 less group 2", "group 1 minus group 2"),
    (r"\blargest less\b", "largest less smallest", "largest minus smallest"),
    (r"\btoo few data\b", "too few data", "too little data"),
    (r"\btold apart better\b", "told apart better", "ranked more accurately"),
    (r"\branked the earlier\b", "is ranked the earlier", "higher scores rank first"),
    (r"\bmend(s|ed|ing)?\b", "helps to mend it", "helps you fix it"),
    (r"\bpictures?\b", "Pictures", "plots"),
    (r"\bis a loop\b", "is a loop", "can be processed one part at a time"),
    (r"\bof now\b", "the one threshold of now", "current common threshold"),
    (r"\bno word for\b", "no row of and no word for", "no declared category for"),
    (r"\bover 1 \w+s\b", "over 1 queries", "over 1 query"),
    (r"\w, …\.", "age, ….", "an end of the list, or 'and so on'"),
    (r"80%%", "80%%", "80%"),
    (r"\bunless told otherwise\b", "10 unless told otherwise", "10 by default"),
    (r"\bwhat came\b", "the rule and what came", "the value received"),
]


@functools.cache
def text_of(path):
    """Text in lower case, which is quicker to search than text of any case."""
    return path.read_text(encoding="utf-8").lower()


@pytest.mark.parametrize(("pattern", "phrase", "instead"), CLIPPED)
def test_no_clipped_phrase(pattern, phrase, instead):
    clipped = re.compile(pattern)
    assert clipped.search(phrase.lower())
    found = [
        f"{path.relative_to(ROOT)}:{i}: {line.strip()}"
        for path in SOURCES
        for i, line in enumerate(text_of(path).splitlines(), 1)
        if clipped.search(line)
    ]
    assert not found, f"Write {instead!r} instead in:\n" + "\n".join(found)
