"""The bench of correct models tells silence, findings, other bits, an error and the end of a process apart."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.correct_models import ended, report
from bench.families import FAMILIES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results():
    """What the bench says of families that end as they are made to."""
    command = [sys.executable, "-m", "tests.bench.families_for_tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {result["name"]: result for result in json.loads(done.stdout)}


@pytest.mark.parametrize(
    ("form", "verdict"),
    [
        ("right", "silent"),
        ("wrong", "findings"),
        ("random", "other bits under opdiff, opcheck"),
        ("impossible", "not run"),
        ("ends", "THE PROCESS ENDS (-9)"),
        ("endless", "HANGS (over 1 s)"),
    ],
)
def test_what_is_said_of_a_model(results, form, verdict):
    assert verdict in results[form]["verdict"]


def test_a_result_is_a_row_of_the_report(results):
    assert "| right | float32 | silent |" in list(report([results["right"]]))


def test_ends_of_processes():
    assert ended(0) == "THE PROCESS ENDS (0)"


def test_there_are_thirty_families():
    assert len(FAMILIES) >= 30
