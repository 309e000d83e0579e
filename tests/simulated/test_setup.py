"""The script of a call on the simulated device makes the device with the fault again, and reproduces it."""

import os
import subprocess
from pathlib import Path

import pytest
import torch

import nbkit
from nbkit import Fault
from tests.processes import PYTHON

ROOT = Path(__file__).parents[2]


def ran(fault, step, tmp_path):
    """Returns what the script of the first wrong call prints, and the row's error."""
    with nbkit.SimulatedDevice().planted(fault), nbkit.opdiff() as trace:
        step()
    op_id, call = next(iter(trace.captured.items()))
    (tmp_path / "alone.py").write_text(nbkit.script_of(trace, op_id, tmp_path))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([*PYTHON, tmp_path / "alone.py"], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout, call.results[0].max_abs_error


@pytest.mark.parametrize(
    "fault",
    [
        Fault("aten.exp", "relative_error"),
        Fault("aten.exp", "relative_error", size=0.25),
        Fault("aten.exp", "relative_error", nth_call=2, phase="forward", min_numel=4),
        Fault("aten.exp", "nan_masked_rows"),
    ],
    ids=["plain", "size", "conditions", "nan"],
)
def test_a_fault_is_reproduced_alone(fault, tmp_path):
    x = torch.tensor([[0.5, -torch.inf], [-torch.inf, -torch.inf]]).to("sim")
    out, error = ran(fault, lambda: (x.exp(), x.exp()), tmp_path)
    assert f"That is what the trace says ({error:.9g})." in out


def test_what_depends_on_calls_before_is_said_not_to_show(tmp_path):
    x = torch.rand(4).to("sim")
    out, error = ran(Fault("aten.exp", "stale_result"), lambda: (x.exp(), (x * 2).exp()), tmp_path)
    script = (tmp_path / "alone.py").read_text()
    assert "# It depends on the calls before, which are not here: it may not show." in script
    assert f"NOT REPRODUCED: the trace says {error:.9g}" in out


def test_conditions_that_were_left_out_are_named(tmp_path):
    x = torch.rand(4).to("sim")
    ran(Fault("aten.exp", where=lambda tensors: True, min_numel=2), lambda: x.exp(), tmp_path)
    script = (tmp_path / "alone.py").read_text()
    assert "# Its conditions (min_numel, where) were met in the step and are left out here." in script
