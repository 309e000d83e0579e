"""`nbkit.NAME`: one list of names, imported at first use, and the same names with their types for a type checker."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nbkit

ROOT = Path(__file__).parents[1]
USER = """import nbkit
from nbkit import *
with opcheck() as trace:
    pass
reveal_type(trace)
reveal_type(trace.findings)
nbkit.opchek
"""


def names_for_type_checkers() -> dict[str, str]:
    """Where a type checker finds each name, by the imports under `if TYPE_CHECKING`."""
    body = ast.parse(Path(nbkit.__file__).read_text()).body
    (block,) = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {name.name: node.module for node in block.body for name in node.names}


def test_a_type_checker_and_a_first_use_find_a_name_in_the_same_file():
    assert names_for_type_checkers() == nbkit._AT_FIRST_USE


def test_every_name_that_nbkit_gives_is_public():
    assert set(nbkit._AT_FIRST_USE) <= set(nbkit.__all__)
    assert len(nbkit.__all__) == len(set(nbkit.__all__))
    assert [name for name in dir(nbkit) if not name.startswith("__")] == sorted(nbkit.__all__)


def test_a_star_brings_every_name():
    space = {}
    exec("from nbkit import *", space)
    assert set(space) - {"__builtins__"} == set(nbkit.__all__)
    assert space["opaudit"] is nbkit.opaudit


def test_every_documented_name_is_public():
    lines = (ROOT / "docs" / "functions.md").read_text().splitlines()
    documented = {line.removeprefix("### ") for line in lines if line.startswith("### ")}
    pages = {path.stem for path in (ROOT / "docs" / "verbs").glob("*.md")}
    assert documented <= set(nbkit.__all__) <= documented | pages


@pytest.mark.full  # mypy reads torch and pandas: seconds after `make types`, a minute without
@pytest.mark.timeout(900)
def test_mypy_tells_a_user_the_type_of_each_name(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(USER + "\n".join(f"reveal_type(nbkit.{name})" for name in nbkit.__all__))
    done = subprocess.run([sys.executable, "-m", "mypy", str(script)], cwd=ROOT, capture_output=True, text=True)
    told = [
        line.partition('Revealed type is "')[2].rstrip('"') for line in done.stdout.splitlines() if "Reveal" in line
    ]
    assert told[:2] == ["nbkit.trace.trace.Trace", "pandas.core.frame.DataFrame"]
    types = dict(zip(nbkit.__all__, told[2:], strict=True))
    assert [name for name, told in types.items() if told == "Any"] == []
    assert types["opaudit"].endswith("-> nbkit.capture.audit.opaudit.opaudit")
    assert types["load"] == "def (path: str | os.PathLike[str]) -> nbkit.trace.trace.Trace"
    assert types["FAULT_KINDS"] == "dict[str, str]"
    assert 'Module has no attribute "opchek"' in done.stdout


def test_only_a_name_that_may_be_mistyped_is_compared_with_public_ones():
    with pytest.raises(AttributeError, match=r"^nbkit has no '_optrac'$"):
        nbkit._optrac  # noqa: B018
    with pytest.raises(AttributeError, match="^nbkit has no 'optrac'; did you mean 'optrace'"):
        nbkit.optrac  # noqa: B018
