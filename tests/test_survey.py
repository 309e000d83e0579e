"""The survey of operator tools lists 64 defects and 35 test cases: each is held by a test here, or a reason is given.

A test holds what its name (`test_defect_b25_...`) or its docstring ("B25: ...", "Test cases 10 and 11") names.
"""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FALLBACK = "of running ops elsewhere or in another dtype (opfallback, opcast), which no verb does yet"
TIMING = "of timing, not of comparing: optime takes its times from the profiler"
REPLAY = "of files of captured inputs and their replay (opcapture, opreplay), which no verb does yet"
DEFECTS_WITHOUT_TEST = {
    2: f"{FALLBACK}; that in-place writes take effect under the verbs there are is held with B8",
    3: FALLBACK,
    4: FALLBACK,
    5: FALLBACK,
    20: TIMING,
    21: REPLAY,
    38: TIMING,
    50: REPLAY,
    53: "of a collector that never ran: nothing is collected here; test_memory.py holds that memory is bounded",
    54: "of a README that names what does not exist: test_repository.py runs the commands and the example of ours",
    64: "of alerts over many steps (opmonitor), which no verb gives yet",
}
# Those of issue 4; of the others some are held, too.
CASES = [*range(5, 17), *range(22, 26), 30, 35]


@cache
def held() -> dict[str, dict[int, set[str]]]:
    """Names of the test functions by the defects and by the cases that they hold."""
    found: dict[str, dict[int, set[str]]] = {"defect": defaultdict(set), "case": defaultdict(set)}
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = ast.get_docstring(node) or ""
                for number in defects_in(node.name.replace("test_defect_b", "B") + " " + text):
                    found["defect"][number].add(f"{path.stem}::{node.name}")
                for number in cases_in(text):
                    found["case"][number].add(f"{path.stem}::{node.name}")
    return found


def defects_in(text: str) -> set[int]:
    """Numbers of "B25", "B44, B45" and "B44-B46"."""
    numbers = {int(number) for number in re.findall(r"\bB(\d+)(?!\d)", text)}
    for first, last in re.findall(r"\bB(\d+)-B(\d+)", text):
        numbers.update(range(int(first), int(last) + 1))
    return numbers


def cases_in(text: str) -> set[int]:
    """Numbers of "Test case 7" and "test cases 3, 23 and 26"."""
    lists = re.findall(r"[Tt]est cases? ((?:\d+(?:, | and |, and )?)+)", " ".join(text.split()))
    return {int(number) for one in lists for number in re.findall(r"\d+", one)}


def test_references_are_read():
    assert defects_in("B2_x, and B44-B46 of B7: B10.") == {2, 44, 45, 46, 7, 10}
    assert cases_in("Of it test cases 3, 23 and 26, and more. Test case 7: 12 rows") == {3, 23, 26, 7}


@pytest.mark.parametrize("number", range(1, 65))
def test_every_defect_is_held_by_a_test_or_has_a_reason(number):
    if number in DEFECTS_WITHOUT_TEST:
        assert len(DEFECTS_WITHOUT_TEST[number].split()) > 5
    else:
        assert held()["defect"][number], f"no test names B{number}"


@pytest.mark.parametrize("number", CASES)
def test_every_case_of_comparing_and_checking_is_held_by_a_test(number):
    assert held()["case"][number], f"no test names test case {number}"


def test_no_test_names_a_defect_or_case_that_is_not_in_the_list():
    assert {number for number, tests in held()["defect"].items() if tests} <= set(range(1, 65))
    assert {number for number, tests in held()["case"].items() if tests} <= set(range(1, 36))
