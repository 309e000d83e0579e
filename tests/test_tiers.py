"""The table of what leaves the fast tier names files that are there."""

from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.tiers import FULL, SAMPLED, seconds_by_folder

TESTS = Path(__file__).parent
FILES = [str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")]


@pytest.mark.parametrize("pattern", [*FULL, *SAMPLED])
def test_a_pattern_names_files(pattern):
    file = pattern.partition("::")[0].partition("[[]")[0].partition("*-")[0].removesuffix("*") + "*"
    assert [name for name in FILES if fnmatchcase(name, file)]


def test_most_folders_keep_fast_tests():
    """What leaves as a whole: packages; of the browser's files one per widget stays."""
    gone = [name for name in FILES if any(fnmatchcase(name, each.removesuffix("*")) for each in FULL)]
    assert len(gone) < len(FILES) / 8


def test_seconds_are_summed_by_folder():
    ran = {"tests/a/b/test_c.py::test_d": 1.0, "tests/a/b/deep/test_e.py::test_f": 0.5, "tests/test_g.py::test_h": 2.0}
    lines = seconds_by_folder(SimpleNamespace(nodeid=name, duration=time) for name, time in [*ran.items()] * 2)
    assert [line.split() for line in lines] == [
        ["tests", "1", "tests", "4.0", "s"],
        ["tests/a/b", "2", "tests", "3.0", "s"],
    ]
