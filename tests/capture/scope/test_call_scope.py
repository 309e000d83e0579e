"""Calls are chosen by the phase that their rows have."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.capture.scope.filters import PHASES

torch.manual_seed(0)
MODEL = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3))
WEIGHT = torch.randn(8, 8, requires_grad=True)
X = torch.randn(6, 8)


def train():
    """Ops outside modules, too: before them, a loss, a mask that needs no gradient."""
    noise = torch.randn(6, 8) * 0.1
    loss = F.dropout(MODEL(X @ WEIGHT + noise)).square().sum()
    loss.backward()
    optimizer = torch.optim.SGD(MODEL.parameters(), 0.1)
    optimizer.step()
    optimizer.zero_grad()


def gradients():
    """The gradient of a gradient, without modules."""
    first = torch.autograd.grad((X @ WEIGHT).square().sum(), WEIGHT, create_graph=True)[0]
    first[0].mul_(2).norm().backward()


def infer():
    with torch.no_grad():
        MODEL(X).argmax()


each_step = pytest.mark.parametrize("step", [train, gradients, infer])
each_phase = pytest.mark.parametrize("phase", PHASES)


def chosen(recorder, step, name):
    with recorder as trace:
        step()
    frame = getattr(trace, name)
    return sorted(zip(frame["op"], frame["phase"], strict=True))


@each_phase
@each_step
def test_opfallback_takes_the_ops_whose_rows_are_in_the_phase(step, phase):
    every = chosen(nbkit.opfallback(), step, "replaced")
    assert chosen(nbkit.opfallback(phases=phase), step, "replaced") == [row for row in every if row[1] == phase]


@each_phase
@each_step
def test_opcapture_takes_the_ops_whose_rows_are_in_the_phase(step, phase, tmp_path):
    every = chosen(nbkit.opcapture(tmp_path / "every"), step, "captures")
    found = chosen(nbkit.opcapture(tmp_path / "chosen", phases=phase), step, "captures")
    assert found == [row for row in every if row[1] == phase]


def test_several_phases_are_all_of_them():
    every = chosen(nbkit.opfallback(), train, "replaced")
    assert chosen(nbkit.opfallback(phases="forward,other,backward,optimizer"), train, "replaced") == every
    without = [row for row in every if row[1] in ("forward", "other")]
    assert chosen(nbkit.opfallback(phases="forward,other"), train, "replaced") == without
    assert {phase for _, phase in every} == set(PHASES)
