"""Tests that the step computes the same bits under opaudit as bare, and that nothing of it is left or kept."""

import gc
import weakref
from collections import Counter
from functools import cache

import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizers

import nbkit
from tests.capture.audit.right.shared import Net, batch, trains
from tests.capture.identical import each_step, left_by
from tests.capture.models import train_step

bare = cache(left_by)
STEP = torch.amp.GradScaler.step


def hooks():
    return [*optimizers._global_optimizer_pre_hooks, *optimizers._global_optimizer_post_hooks]


@each_step
def test_opaudit_leaves_the_step_as_it_is(name, dtype):
    watch = nbkit.opaudit()
    assert left_by(name, dtype, watch) == bare(name, dtype)
    assert watch.trace.complete
    assert (hooks(), torch.amp.GradScaler.step) == ([], STEP)


@pytest.mark.parametrize("name", ["llama", "conv"])
def test_the_trace_is_that_of_optrace(name):
    def ops(verb):
        torch.manual_seed(0)
        step = train_step(name)
        step()
        with verb() as trace:
            step()
        return trace.ops[["op", "module", "phase", "source"]], trace.tensors["shape"].tolist()

    (audited, shapes), (traced, expected) = ops(nbkit.opaudit), ops(nbkit.optrace)
    assert audited.equals(traced)
    assert shapes == expected


def test_a_recording_around_it_does_not_see_its_work():
    torch.manual_seed(0)
    step = train_step("mlp")
    with nbkit.optrace() as outer, nbkit.opaudit() as inner:
        step()
    assert Counter(outer.ops["op"]) == Counter(inner.ops["op"])


def test_nothing_is_left_or_kept_after_an_exception():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    recorder = nbkit.opaudit(model, optimizer)
    with pytest.raises(ZeroDivisionError), recorder as trace:
        trains(model, optimizer)(0)
        raise ZeroDivisionError
    assert (hooks(), torch.amp.GradScaler.step) == ([], STEP)
    assert (trace.complete, len(trace.parameters), trace.meta["optimizer_steps"]) == (False, 6, 1)
    alive = [weakref.ref(model), *[weakref.ref(parameter) for parameter in model.parameters()], weakref.ref(optimizer)]
    del model, optimizer
    gc.collect()
    assert [one() for one in alive] == [None] * len(alive)


def test_the_copies_go_with_the_recording():
    model = nn.Linear(100, 100)
    size = model.weight.numel()

    def copies():
        gc.collect()
        return sum(issubclass(type(one), torch.Tensor) and one.numel() == size for one in gc.get_objects())

    before = copies()
    recorder = nbkit.opaudit()
    with recorder:
        model(torch.randn(2, 100))
        assert copies() == before + 1
    assert copies() == before


def test_an_optimizer_whose_step_raises_is_told_as_bare():
    model = Net()

    class Raising(torch.optim.SGD):
        def step(self, closure=None):
            raise ValueError("no step")

    optimizer, scaler = Raising(model.parameters(), 0.1), torch.amp.GradScaler("cpu")
    with pytest.raises(ValueError, match="no step") as caught, nbkit.opaudit():
        scaler.scale(model(batch()).mean()).backward()
        scaler.step(optimizer)
    files = [frame.path.name for frame in caught.traceback]
    assert "steps.py" not in files
