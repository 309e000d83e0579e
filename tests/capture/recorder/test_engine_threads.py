"""Ops that autograd runs in a device thread are recorded like any other."""

import json
import subprocess
from pathlib import Path

import pytest

from nbkit.compat.torch_versions import setup_of_backends_in_python
from tests.processes import PYTHON

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(setup_of_backends_in_python() is None, reason="the simulated device needs torch 2.11")


@pytest.fixture(scope="module")
def recorded():
    command = [*PYTHON, "-m", "tests.capture.engine_thread_step"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_backward_pass_ran_in_another_thread(recorded):
    assert recorded["in another thread"]
    engine = [row for row in recorded["rows"] if row["forward_op_id"] is not None]
    assert {row["thread"] for row in engine} == {1}
    assert {row["device"] for row in recorded["rows"]} == {"sim:0"}


def test_its_ops_hang_under_the_backward_call_and_know_their_forward_ops(recorded):
    rows = recorded["rows"]
    backward_call = next(row for row in rows if row["op"] == "torch.Tensor.backward")
    pairs = [(row["op"], rows[row["forward_op_id"]]["op"]) for row in rows if row["forward_op_id"] is not None]
    assert all(row["parent_id"] == backward_call["op_id"] for row in rows if row["thread"] == 1)
    assert pairs[0] == ("aten.expand.default", "aten.sum.default")
    assert [forward for op, forward in pairs if op == "aten.mm.default"] == ["aten.mm.default"] * 2


def test_ops_of_each_pass_hang_under_its_call_and_are_of_its_step(recorded):
    calls = [row for row in recorded["steps"] if row["op"] == "torch.Tensor.backward"]
    products = [row for row in recorded["steps"] if row["op"] == "aten.mm.default" and row["thread"] == 1]
    assert [row["step"] for row in calls] == [0, 1, 2] and len(products) == 6
    assert [row["parent_id"] for row in products] == [call["op_id"] for call in calls for _ in range(2)]
    assert [row["step"] for row in products] == [0, 0, 1, 1, 2, 2]


def test_ops_of_a_hook_on_plain_tensors_stand_in_its_thread_with_their_line(recorded):
    """These a native recorder writes itself, in a thread that it did not begin in."""
    rows = [row for row in recorded["hooked"] if row["op"] in ("aten.neg.default", "aten.sum.default")]
    assert [(row["op"], row["thread"]) for row in rows] == [
        ("aten.sum.default", 0),
        ("aten.neg.default", 1),
        ("aten.sum.default", 1),
    ]
    assert "engine_thread_step.py" in rows[1]["source"]


def test_modules_in_a_hook_are_no_calls_in_a_thread_of_the_users_own(recorded):
    assert [row["module"] for row in recorded["hooked"] if row["op"] == "aten.tanh.default"] == [""]
    assert not [reason for reason in recorded["skipped"] if "other thread" in reason]
