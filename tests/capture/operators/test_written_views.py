"""Follows ops that write to views in place, of which autograd makes the views again before they have ended."""

import subprocess

import pytest
import torch
from torch import nn

import nbkit
from tests.processes import PYTHON
from tests.support.simulated import needs_simulated_device, simulated_device

WRITES = {
    "relu_ of what linear returns": ("aten.relu_.default", lambda y: torch.relu_(y)),
    "add_ to a row": ("aten.add_.Tensor", lambda y: y[0].add_(2)),
    "clamp_ of a slice of a slice": ("aten.clamp_.default", lambda y: y[1:3][:, 1:].clamp_(0)),
    "assignment": ("aten.copy_.default", lambda y: y.__setitem__(0, y[1].detach().clone())),
}
each_write = pytest.mark.parametrize("op, write", WRITES.values(), ids=WRITES)


def on_the_device():
    """Returns the device, and what makes a view of a tensor with a graph there."""
    device = simulated_device()
    torch.manual_seed(0)
    linear, x = nn.Linear(8, 8), torch.randn(4, 6, 8)
    linear, x = linear.to(device.torch_device), x.to(device.torch_device)
    return device, lambda: linear(x)


@each_write
def test_opdiff_names_the_op_that_wrote(op, write):
    device, make = on_the_device()
    with device.planted(nbkit.Fault(op.split(".")[1], "dropped_write")), nbkit.opdiff() as trace:
        write(make())
    wrong = trace.diffs[trace.diffs["status"] == "mismatch"]
    assert wrong["op"].tolist() == [op]
    assert trace.ops.set_index("op_id")["op"][wrong["op_id"]].tolist() == [op]


@each_write
def test_opfallback_opstable_and_opcast_name_the_op_that_wrote(op, write):
    _, make = on_the_device()
    named = []
    for verb in (nbkit.opfallback(ops=op), nbkit.opstable(ops=op), nbkit.opcast("float64", ops=op)):
        with verb as trace:
            write(make())
        named.append([op for name in ("replaced", "stability") for op in getattr(trace, name, {"op": []})["op"]])
    assert named == [[op], [op], [] if op == "aten.copy_.default" else [op]]


@each_write
def test_opcapture_of_what_opdiff_found_names_the_op_that_wrote(tmp_path, op, write):
    device, make = on_the_device()
    with device.planted(nbkit.Fault(op.split(".")[1], "dropped_write")), nbkit.opdiff() as flagged:
        write(make())
    with nbkit.opcapture(tmp_path / "calls", only=flagged) as trace:
        write(make())
    captured = trace.captures
    assert captured["op"].tolist() == [op]
    assert trace.ops.set_index("op_id")["op"][captured["op_id"].astype(int)].tolist() == [op]


DRY_RUN = """
import torch, nbkit
from torch import nn
torch.manual_seed(0)

def dry_run(step):
    with nbkit.opcast("bfloat16", dry_run=True) as trace:
        step()
    changes = trace.casts.dropna(subset="loss_change")
    print(sorted(changes["op"]))

linear, x = nn.Linear(8, 8, dtype=torch.cfloat), torch.randn(4, 8, dtype=torch.cfloat)
dry_run(lambda: torch.view_as_real(linear(x)).mul_(2).sum().backward())
dry_run(lambda: linear(x).real.mul_(2).sum().backward())
dry_run(lambda: linear(x).imag.relu_().sum().backward())
device = nbkit.SimulatedDevice().torch_device
linear, x = nn.Linear(8, 8).to(device), torch.randn(4, 6, 8).to(device)
dry_run(lambda: linear(x).relu_().sum().backward())
dry_run(lambda: linear(x)[0].add_(1).sum().backward())
"""


@needs_simulated_device
def test_a_dry_run_of_opcast_waits_for_no_lock_of_autograd():
    done = subprocess.run([*PYTHON, "-c", DRY_RUN], capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines() == [
        "['aten.mul_.Tensor', 'aten.sum.default']",
        "['aten.mul_.Tensor', 'aten.sum.default']",
        "['aten.relu_.default', 'aten.sum.default']",
        "['aten.addmm.default', 'aten.relu_.default', 'aten.sum.default']",
        "['aten.add_.Tensor', 'aten.addmm.default', 'aten.sum.default']",
    ], done.stderr


def test_a_dry_run_of_opcast_leaves_views_of_complex_parameters_alone():
    def stepped(recorder):
        torch.manual_seed(0)
        w = nn.Parameter(torch.randn(4, dtype=torch.cfloat))
        optimizer = torch.optim.Adam([w])
        with recorder as trace:
            optimizer.zero_grad()
            (w * w.conj()).real.sum().backward()
            optimizer.step()
        return w.detach(), trace

    (bare, _), (left, trace) = stepped(nbkit.optrace()), stepped(nbkit.opcast("bfloat16", dry_run=True))
    assert torch.equal(left, bare)
    assert "optimizer" in set(trace.casts["phase"])
