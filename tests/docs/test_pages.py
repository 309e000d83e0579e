"""The generated pages are what the code says today: made again, nothing changes."""

import subprocess
from pathlib import Path

import pytest

from docs.generator.examples import run_all
from docs.generator.tables import page_of
from nbkit.capture.native.library import library
from nbkit.magics import CELL_MAGICS
from nbkit.schema import TABLES
from tests.processes import PYTHON

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def committed() -> dict[str, str]:
    """The pages in docs/ that the generator writes, by name."""
    alone = [DOCS / f"{name}.md" for name in ("README", "functions", "command_line", "findings")]
    names = [*DOCS.glob("verbs/*"), *DOCS.glob("frames/*/*"), *alone]
    return {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in names}


@pytest.mark.skipif(library() is None, reason="the examples were made with the built recorder")
def test_make_docs_changes_nothing(tmp_path):
    """In a process of its own, as `make docs` has one: the examples share it with no other test."""
    subprocess.run([*PYTHON, "-m", "docs.generator", str(tmp_path)], cwd=ROOT, check=True, timeout=120)
    made = {str(path.relative_to(tmp_path)): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md")}
    assert sorted(made) == sorted(committed()), "run `make docs` and commit what it writes"
    for name, text in committed().items():
        assert made[name] == text, f"docs/{name} is out of date: run `make docs` and commit what it writes"


def test_every_verb_and_every_frame_has_a_page():
    names = set(committed())
    assert names >= {f"verbs/{verb}.md" for verb in CELL_MAGICS} | {page_of(table) for table in TABLES.values()}
    assert names >= {"verbs/opdiff.md", "frames/recordings/faults.md", "frames/graphs/nodes.md", "README.md"}


def test_a_verb_without_its_files_is_named(tmp_path):
    with pytest.raises(LookupError, match=r"The verb 'opnew' has no page yet: write docs/sources/examples/opnew\.py\."):
        run_all(tmp_path, ["opnew"])
