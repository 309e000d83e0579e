"""The table of what leaves the fast tier names files that are there."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.tiers import FULL, SAMPLED

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
