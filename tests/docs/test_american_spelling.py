"""Texts for users have American spelling: documents, notebooks, the widgets' source, strings and comments of nbkit."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Beginnings of words, or after a prefix; `re` and `un` are prefixes that occur.
BRITISH = re.compile(
    r"(?<![a-z])(?:un|re|de)?(?:"
    r"colour|favour|behaviour|neighbour|honour|labour|grey|centre[ds]?\b|centring|licence|defence|artefact|judgement|"
    r"catalogue|dialogue|programme[sd]?\b|towards|whilst|amongst|learnt|spelt|spoilt|"
    r"(?:label|cancel|model|travel|signal|total|level)l(?:ed|ing)\b|"
    r"(?:recogn|normal|synchron|initial|optim|quant|summar|vector|random|serial|organ|special|general|minim|maxim|visual|custom|"
    r"util|token|material|parametr|local|final|stabil|standard|categor|emphas|penal|priorit|factor|canonical)is(?:e|ed|es|er|ers|ing|ation|ations)\b|"
    r"analys(?:e|ed|ing|er)\b)",
)
# What stands between the parts of a word in a source, but not in its texts: escaped letters, and two literals in a row.
BETWEEN = re.compile(r"""\\[a-z]|(["'])\s*[bfru]*\1""", re.IGNORECASE)
# Names of Python, and one of a case in bench/, where texts name them; the first is public.
NAMES = re.compile(
    r"synchronising_calls|initialised_again_and_again|nbkit[./]analysis[./]structure[./]recognise|recognise\("
)
SOURCES = {
    ".py": ("nbkit", "sample_models"),
    ".js": ("widgets/src",),
    ".md": ("docs", "bench"),
    ".ipynb": ("notebooks",),
    ".svg": ("docs",),
}
FILES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(
        path
        for suffix, folders in SOURCES.items()
        for folder in folders
        for path in sorted((ROOT / folder).rglob(f"*{suffix}"))
    ),
]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yields lines with their numbers; of Python only strings and comments, whose number is that of their start."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return (yield from enumerate(text.splitlines(), 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def british(text: str) -> list[str]:
    return [match.group() for match in BRITISH.finditer(NAMES.sub("", text).lower())]


def suspect(path: Path) -> bool:
    """Whether such a word is anywhere in a file, if only in a name: to take a source apart takes longer."""
    text = path.read_text(encoding="utf-8").lower()
    return any(BRITISH.search(BETWEEN.sub(between, text)) for between in ("", " "))


def test_no_text_is_british() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {word}"
        for path in FILES
        if "node_modules" not in path.parts and "static" not in path.parts and suspect(path)
        for line, text in texts(path)
        for word in british(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "Colours",
        "greyed out",
        "is uninitialised",
        "recognises",
        "neighbouring",
        "the centre",
        "centred",
        "labelled",
        "analyse",
        "towards",
    ],
)
def test_british_spelling_is_seen(text: str) -> None:
    assert british(text)


@pytest.mark.parametrize(
    "source", ["x = 'a\\ncolour'", "x = (\n    'the col'\n    f'our'\n)", "# Greyed", "colour = 1"]
)
def test_no_file_with_such_a_word_is_passed_over(tmp_path: Path, source: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert suspect(path)


@pytest.mark.parametrize(
    "text",
    [
        "flametree",
        "analyses",
        "analysis",
        "otherwise",
        "precise",
        "`synchronising_calls()`",
        "cancellation",
        "raised",
        "programmed_by",
        "modules",
    ],
)
def test_other_words_are_left_alone(text: str) -> None:
    assert british(text) == []
