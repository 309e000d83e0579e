"""The bench of broken steps tells answers that name a cause from others, and nbkit names the causes."""

import pytest

import bench.audit
from bench.audit import answer, is_named, judged, report
from bench.cases import FOLDER, case_of, cases
from tests.processes import PYTHON

# One of each kind, of those that take least.
LIGHT = (
    "training/optimizer_of_a_copy",
    "training/column_against_row",
    "training/encoder_under_no_grad",
    "numeric/log_of_zero",
    "numeric/small_rate_in_bfloat16",
)
HEADER = '"""A mistake.\n\nFact: nan\nLine: y = x / 0\n"""\n\n\ny = x / 0\n'


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    monkeypatch.setattr(bench.audit, "PYTHON", PYTHON)


def written(folder, text):
    path = folder / "case.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", LIGHT)
def test_the_cause_is_named(name):
    (case,) = cases([name])
    assert judged(case, ["opaudit", "opcheck"]).by


@pytest.mark.full
@pytest.mark.parametrize("case", [case for case in cases() if case.name not in LIGHT], ids=lambda case: case.name)
def test_every_cause_is_named_but_those_that_say_why_not(case):
    assert (judged(case).by is None) == (case.missed is not None)


def test_a_case_is_read(tmp_path):
    case = case_of(written(tmp_path, HEADER))
    assert (case.mistake, case.expected, case.steps) == ("A mistake.", ("nan", "y = x / 0"), 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Line: y = x / 0", "Line: y = x / 1"),
        ("Line: y = x / 0", ""),
        ("Fact: nan", "Facts: nan"),
        ("Fact: nan", "Fact:"),
    ],
)
def test_a_header_that_asks_for_nothing_is_refused(tmp_path, old, new):
    with pytest.raises(ValueError, match="case.py"):
        case_of(written(tmp_path, HEADER.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. error, nan: of div.\n   a.py:9: `y = x / 0`", True),
        ("1. error, nan: of div.\n\n2. hint: `y = x / 0`", False),
        ("1. error, inf: of div.\n   a.py:9: `y = x / 0`", False),
        ("1. error, inf: of div.\n   nan.py:9: `y = x / 0`", False),
    ],
)
def test_one_finding_must_say_all(tmp_path, text, expected):
    assert is_named(case_of(written(tmp_path, HEADER).rename(tmp_path / "nan.py")), text) is expected


def test_a_step_that_raises_is_judged_until_then(tmp_path):
    path = written(tmp_path, f"{HEADER[:-11]}\ndef step(i=0):\n    y = x / 0\n")
    assert "NameError" in answer(case_of(path), "opcheck")


def test_a_case_that_is_not_named_is_shown(tmp_path):
    case = case_of(written(tmp_path, f"{HEADER[:-11]}\n\ndef step(i=0):\n    y = x / 0\n\n\nx = 1.0\n"))
    text = "\n".join(report([judged(case, ["opaudit", "opcheck"])]))
    assert "0 of 1 causes named" in text
    assert "Expected in one finding: nan; y = x / 0" in text
    assert "ZeroDivisionError" in text


def test_no_name_is_taken_twice():
    names = [case.path.stem for case in cases()]
    assert len(names) == len(set(names)) == len(list(FOLDER.glob("*/*.py")))
