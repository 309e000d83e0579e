"""Ops outside the wanted modules do not run on the reference, and the rows are those of comparing everything."""

from collections import Counter

import pytest
import torch
from torch import nn

from nbkit.patterns import module_matcher
from tests.capture.diff.planted import compared
from tests.capture.models import mlp, train_step
from tests.capture.recorder.same_bits.test_bit_identity_ways import WAYS

COLUMNS = ["op", "module", "phase", "role", "position", "dtype", "shape", "max_abs_error", "noise_ratio", "status"]


class Counted:
    """A reference that counts its runs."""

    def __init__(self):
        self.runs = []

    def __call__(self, op, args, kwargs):
        self.runs.append(str(op))
        return op(*args, **kwargs)


def both(step, **options):
    """The trace with the filter, how often the reference ran, and the rows of comparing everything that fit."""
    reference = Counted()
    torch.manual_seed(3)
    trace = compared(step, reference=reference, **options)
    torch.manual_seed(3)
    everything = compared(step, reference=lambda op, a, k: op(*a, **k)).diffs
    fits = everything["module"].map(module_matcher(options.get("modules")), na_action="ignore").fillna(False)
    unfit = everything["module"].map(module_matcher(options.get("exclude_modules")), na_action="ignore").fillna(False)
    wanted = fits if "modules" in options else ~unfit.astype(bool)
    return trace, reference.runs, everything[wanted.astype(bool)]


def same_rows(trace, rows):
    actual, expected = (frame[COLUMNS].reset_index(drop=True) for frame in (trace.diffs, rows))
    return actual.equals(expected)


def test_only_ops_of_the_module_run_on_the_reference():
    trace, runs, rows = both(train_step("llama"), modules="model.layers.1.mlp")
    assert same_rows(trace, rows) and set(rows["phase"]) == {"forward", "backward"}
    assert len(runs) == rows["op_id"].nunique() == 15
    assert trace.meta["compared_ops"] == 15
    assert trace.meta["skipped"]["not compared: modules that the filters leave out"] > 400


@pytest.mark.parametrize("options", [{"modules": "3"}, {"modules": "0,6"}, {"exclude_modules": "3"}])
@pytest.mark.parametrize("way", [way for way in WAYS if way != "hooks"])
def test_every_way_to_train_gives_the_rows_of_comparing_everything(way, options):
    """Checkpoints, double backward, closures; a random input keeps its dropout as the seed is set before each run."""
    model, state, x = mlp(), {}, torch.randn(5, 6)
    state |= {name: value.clone() for name, value in model.state_dict().items()}

    def step():
        model.load_state_dict(state)
        model.zero_grad()
        WAYS[way](model, x.clone())

    trace, runs, rows = both(step, **options)
    assert same_rows(trace, rows)
    assert len(rows) and len(runs) <= rows["op_id"].nunique() + 12


def test_a_backward_pass_inside_a_module_and_in_place_writes_through_views():
    class Inner(nn.Module):
        def forward(self, x):
            y = x * 2
            y[:, 1:].mul_(3)
            y.view(-1)[0] = 1.0
            return y

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = Inner(), nn.Linear(3, 3)

        def forward(self, x):
            z = self.last(self.inner(x))
            z.sum().backward(retain_graph=True)
            return z

    model, x = Outer(), torch.ones(2, 3)
    trace, runs, rows = both(lambda: model(x.clone().requires_grad_()).exp().sum().backward(), modules="inner")
    assert same_rows(trace, rows) and set(rows["phase"]) == {"forward", "backward"}
    ran = rows.groupby("op_id")["op"].first().tolist()
    assert Counter(runs) - Counter(ran) == {"aten.add_.Tensor": len(runs) - len(ran)}  # gradients, added up


def test_what_is_known_too_late_is_compared_and_said():
    """The second gradient of a parameter is added to the first by a node that knows no module."""
    net, x = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), torch.ones(1, 2)

    def step():
        net.zero_grad()
        net(x).sum().backward()
        net(x).sum().backward()

    trace, runs, rows = both(step, modules="0")
    assert same_rows(trace, rows) and "aten.add_.Tensor" in set(rows["op"])
    assert runs.count("aten.add_.Tensor") == 4  # two of them for the other layer, which has no rows
    [note] = trace.meta["notes"]
    assert note.startswith("The module of ") and note in trace.summary()


def test_without_a_filter_nothing_is_unknown():
    trace = compared(train_step("mlp"))
    assert trace.meta["notes"] == []
    assert "not compared: modules that the filters leave out" not in trace.meta["skipped"]


def test_a_sample_is_taken_of_the_ops_of_the_module():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), torch.ones(2, 4)
    trace = compared(lambda: [net(x) for _ in range(4)] and None, modules="1", sample=2)
    assert trace.diffs["op"].tolist() == ["aten.addmm.default"] * 2
