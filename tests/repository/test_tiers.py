"""The table of what leaves the fast tier names files that are there."""

from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import tiers
from tests.tiers import FIRST, FULL, MEASURED, SAMPLED, ordered, seconds_by_folder

TESTS = Path(__file__).parents[1]
FILES = [str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")]


@pytest.mark.parametrize("pattern", [*FULL, *SAMPLED, *FIRST])
def test_a_pattern_names_files(pattern):
    file = pattern.partition("::")[0].partition("[[]")[0].partition("*-")[0].removesuffix("*") + "*"
    assert [name for name in FILES if fnmatchcase(name, file)]


def test_slow_tests_are_in_files_that_are_there():
    assert {line.partition("::")[0].removeprefix("tests/") for line in MEASURED.read_text().splitlines()} <= set(FILES)


def test_slow_calls_are_written_but_the_fastest_of_each_file_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(tiers, "MEASURED", tmp_path / "slow.txt")
    ran = {"test_a.py::x": 0.7, "test_a.py::y": 0.8, "test_b.py::x": 0.01, "test_b.py::y": 0.2, "test_b.py::z": 2.0}
    reports = [SimpleNamespace(nodeid=name, duration=time, when="call") for name, time in ran.items()]
    reports.append(SimpleNamespace(nodeid="test_b.py::x", duration=9.0, when="setup"))
    tiers.write_slow(reports)
    assert tiers.MEASURED.read_text() == "test_a.py::y\ntest_b.py::z\n"


def test_slower_cases_are_written_where_the_fastest_of_the_test_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(tiers, "MEASURED", tmp_path / "slow.txt")
    ran = {"test_a.py::x": 0.01, "test_a.py::y[a[0]]": 0.2, "test_a.py::y[b]": 0.15, "test_a.py::y[c]": 0.3}
    tiers.write_slow(SimpleNamespace(nodeid=name, duration=time, when="call") for name, time in ran.items())
    assert tiers.MEASURED.read_text() == "test_a.py::y[a[0]]\ntest_a.py::y[c]\n"


def test_most_folders_keep_fast_tests():
    """What leaves as a whole: packages; of the browser's files one per widget stays."""
    gone = [name for name in FILES if any(fnmatchcase(name, each.removesuffix("*")) for each in FULL)]
    assert len(gone) < len(FILES) / 8


def test_slow_folders_come_first_and_files_stay_together():
    names = ["views/test_d.py::d", "browser/test_b.py::b", "wheel/test_c.py::c", "browser/test_b.py::a"]
    items = [SimpleNamespace(nodeid=f"tests/{name}") for name in names]
    ordered(items)
    assert [names.index(item.nodeid.removeprefix("tests/")) for item in items] == [1, 3, 2, 0]


def test_seconds_are_summed_by_folder():
    ran = {"tests/a/b/test_c.py::test_d": 1.0, "tests/a/b/deep/test_e.py::test_f": 0.5, "tests/test_g.py::test_h": 2.0}
    lines = seconds_by_folder(SimpleNamespace(nodeid=name, duration=time) for name, time in [*ran.items()] * 2)
    assert [line.split() for line in lines] == [
        ["tests", "1", "tests", "4.0", "s"],
        ["tests/a/b", "2", "tests", "3.0", "s"],
    ]
