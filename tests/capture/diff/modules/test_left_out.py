"""Modules that cannot be compared are counted or have a row that says why; those that hold odd things are compared."""

import threading
from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from tests.capture.diff.planted import compared, only

X = torch.ones(2, 2)


class Unmade(nn.Module):
    """Has a parameter whose shape nobody has told."""

    def __init__(self):
        super().__init__()
        self.weight = nn.UninitializedParameter()

    def forward(self, x):
        return x * 2


@pytest.fixture
def hook_for_all():
    handle = register_module_forward_hook(lambda *call: None)
    yield
    handle.remove()


def left_out(module, x=X):
    """Why the one call of a module is not compared."""
    trace = compared(lambda: module(x), level="module")
    assert trace.diffs.empty and trace.complete
    (reason,) = (reason for reason in trace.meta["skipped"] if reason.startswith("not compared: "))
    assert trace.meta["skipped"][reason] == 1
    return reason.removeprefix("not compared: ")


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning", "ignore:.*nested tensors:UserWarning")
def test_scripted_modules_unmade_parameters_and_nested_tensors_are_counted():
    assert left_out(torch.jit.script(nn.Tanh())) == "scripted modules"
    assert left_out(Unmade()) == "modules whose parameters are not made yet"
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert left_out(nn.Tanh(), nested) == "nested tensors, which have no one shape"


def test_hooks_for_all_modules_are_counted(hook_for_all):
    assert left_out(nn.Tanh()) == "modules under hooks for all modules, which may change what they compute"


class Takes(nn.Module):
    """Reads one tensor of what it is given."""

    def forward(self, given):
        return given["x"].exp()


def test_an_argument_that_cannot_be_looked_through_is_counted_and_the_step_goes_on():
    class Closed(dict):
        def values(self):
            raise ValueError("closed")

    outs = []
    model = Takes()
    reason = left_out(lambda given: outs.append(model(given)), Closed(x=X))
    assert reason == "Takes could not be compared (ValueError: closed)"
    assert torch.equal(outs[0], X.exp())


class Pops(nn.Module):
    """Takes a thing from a list that the step shares: a second run finds it empty, or another thing."""

    def __init__(self, things):
        super().__init__()
        self.pop = lambda: things.pop()

    def forward(self, x):
        return self.pop()(x)


def test_a_module_that_raises_or_returns_more_when_run_again_is_a_row():
    row = only(compared(lambda: Pops([torch.exp])(X), level="module"))
    assert (row["status"], row["message"]) == ("failed", "could not be compared (IndexError: pop from empty list)")
    row = only(compared(lambda: Pops([torch.aminmax, torch.exp])(X), level="module"))
    assert (row["status"], row["message"]) == ("shape", "1 tensors, expected 2")


class Things(list):
    """A list of a class of one's own."""


class Count:
    """A thing that changes whenever it is used."""

    calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


class Holds(nn.Module):
    """Holds things in odd containers, and a lock, which no copy can be made of."""

    def __init__(self):
        super().__init__()
        self.lock, self.named, self.listed = threading.Lock(), OrderedDict(first=Count()), Things([Count()])

    def forward(self, x):
        with self.lock:
            return self.listed[0](self.named["first"](x))


def test_containers_of_other_classes_are_copied_with_what_they_hold_and_a_lock_is_shared():
    model = Holds()
    assert compared(lambda: (model(X), model(X)), level="module").diffs["status"].tolist() == ["ok", "ok"]
    assert (model.named["first"].calls, model.listed[0].calls) == (2, 2)


class Answer:
    """Holds results as attributes, one of them in an answer of its own."""

    def __init__(self, **values):
        self.__dict__ |= values


class Answers(nn.Module):
    def forward(self, given):
        return Answer(logits=given.x.exp(), hidden=Answer(states=[given.x.sin()]), step=1)


def test_tensors_in_objects_of_other_classes_are_compared():
    rows = compared(lambda: Answers()(Answer(x=X)), level="module").diffs
    assert rows[["role", "position", "status"]].to_numpy().tolist() == [["output", 0, "ok"], ["output", 1, "ok"]]


def test_modules_that_read_the_bits_of_numbers_are_counted():
    class Bits(nn.Module):
        def forward(self, x):
            return x.view(torch.int32) + 1

    assert left_out(Bits()) == "modules that read the bits of floating-point numbers"
