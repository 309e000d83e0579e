"""No user tensor is kept alive, memory stays flat, and nothing of a recorder outlives it without a collection."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from weakref import ref

import numpy as np
import psutil
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from tests.capture.models import aten, record, train_step


@pytest.fixture(autouse=True)
def no_collections() -> Iterator[None]:
    """Pauses the collector: what dies here dies by its last reference, as in a bare step between two collections."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive(references):
    return [name for name, reference in references.items() if reference() is not None]


@contextmanager
def optrace(**options):
    """Runs nbkit.optrace, whose trace is let go at the end."""
    with nbkit.optrace(**options):
        yield


RECORDERS = {"bare": nullcontext, "default": optrace, "stats": lambda: optrace(values="stats")}


def step_references(model, optimizer):
    """Returns weak references to what one training step makes, judged once its variables are gone."""
    x = torch.randn(4, 6)
    hidden = model[:4](x)
    loss = model[4:](hidden).pow(2).mean()
    loss.backward()
    optimizer.step()
    grads = {f"grad {name}": ref(p.grad) for name, p in model.named_parameters()}
    optimizer.zero_grad()
    return {"x": ref(x), "hidden": ref(hidden), "loss": ref(loss), **grads}


@pytest.mark.parametrize("recorder", RECORDERS)
def test_the_tensors_of_a_step_die_with_its_variables(recorder):
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    with RECORDERS[recorder]():
        references = step_references(model, optimizer)
        torch.ones(1)  # the next op
        inside = alive(references)
    assert inside == []
    assert alive(references) == []


@pytest.mark.parametrize("recorder", RECORDERS)
def test_tensors_die_right_after_backward(recorder):
    """Before any other op runs: a graph that is kept, and the leaf that its last node belongs to."""
    with RECORDERS[recorder]():
        leaf = torch.randn(3, requires_grad=True)
        saved = leaf.exp()
        loss = saved.sum()
        loss.backward(retain_graph=True)
        references = {"leaf": ref(leaf), "saved": ref(saved), "loss": ref(loss)}
        del leaf, saved, loss
        inside = alive(references)
    assert inside == []


@pytest.mark.parametrize("recorder", RECORDERS)
def test_tensors_die_when_the_recording_ends_with_backward(recorder):
    leaf = torch.randn(3, requires_grad=True)
    with RECORDERS[recorder]():
        loss = leaf.exp().sum()
        loss.backward(retain_graph=True)
    references = {"leaf": ref(leaf), "loss": ref(loss)}
    del leaf, loss
    assert alive(references) == []


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_deleted_variable_dies_at_once(recorder):
    def inner():
        model, x, memory = nn.Linear(3, 3), torch.randn(2, 3), np.ones((3, 3), np.float32)
        model.weight = nn.Parameter(torch.from_numpy(memory))
        y = model(x)
        z = y * 2
        references = {"y": ref(y), "z": ref(z), "model": ref(model), "memory of the weight": ref(memory)}
        del y, z
        found = alive({name: references[name] for name in "yz"})
        del model, memory
        return found, references

    with RECORDERS[recorder]():
        found, references = inner()
        assert found == []
        assert alive(references) == []


def test_a_variable_of_a_method_dies_though_its_frame_was_searched_for_the_model():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(2, 2)

        def generate(self, box):
            x = box.pop()
            y, reference = self.part(x), ref(x)
            del x
            return y, reference()

    with nbkit.optrace(), torch.no_grad():
        assert Net().generate([torch.randn(1, 2)])[1] is None


@pytest.mark.parametrize("recorder", RECORDERS)
def test_an_exception_keeps_nothing_alive(recorder):
    references = {}

    def fails():
        x = torch.randn(3, requires_grad=True)
        references.update(x=ref(x))
        x.exp() @ torch.ones(4)

    with pytest.raises(RuntimeError, match="inconsistent tensor size|size mismatch"), RECORDERS[recorder]():
        fails()
    gc.collect()  # a bare exception and its frames are a cycle too
    assert alive(references) == []


def test_a_finished_recorder_needs_no_collection():
    """Its rows and modes go with the last reference: a loop of recordings must not wait for the collector."""
    recorder = nbkit.optrace()
    with recorder:
        nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
        recording = ref(recorder.recording)
    assert recording() is None


VERBS = {
    "optrace": nbkit.optrace,
    "opcheck": nbkit.opcheck,
    "opdiff": nbkit.opdiff,
    "opaudit": nbkit.opaudit,
    "opcast": lambda: nbkit.opcast("bfloat16", dry_run=True),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_kept_recorder_weighs_nothing(verb):
    """Neither its rows nor a copy of a parameter or the last result outlives the recording."""
    recorder, model = VERBS[verb](), nn.Linear(7, 13)
    with recorder:
        model(torch.ones(11, 7)).sum().backward()
        recording = ref(recorder.recording)
        out = model(torch.ones(11, 7))
    del model, out
    if verb == "opaudit":  # what watches the optimizers is a cycle
        gc.collect()
    assert recording() is None
    tensors = [one for one in gc.get_objects() if type(one) in (torch.Tensor, nn.Parameter)]
    assert not [one for one in tensors if one.shape == (13, 7) or (one.shape == (11, 13) and one.grad_fn is not None)]


def test_fifty_traced_steps_leave_memory_flat():
    """The growth is bounded in total."""
    gc.enable()
    step, process = train_step("llama"), psutil.Process()
    for _ in range(10):
        record(step)
    before = process.memory_info().rss
    for _ in range(50):
        record(step)
    assert process.memory_info().rss - before < 8 * 2**20


def test_one_recording_of_many_steps_keeps_no_tensors():
    weight, process = torch.randn(500, 500, requires_grad=True), psutil.Process()
    with nbkit.optrace() as trace:
        (weight @ weight).sum().backward()
        before = process.memory_info().rss
        for _ in range(80):  # 1 MB each way and more: 240 MB if anything were kept; malloc itself moves by 10 to 20
            (weight @ weight).sum().backward()
            weight.grad = None
    assert len(aten(trace, "aten.mm")) == 81 * 3
    assert process.memory_info().rss - before < 32 * 2**20


def test_swap_tensors_works_on_parameters_that_were_recorded():
    """It refuses tensors that have weak references, and Module.to may use it."""
    model = nn.Linear(3, 3)
    with nbkit.optrace() as trace:
        F.mse_loss(model(torch.ones(1, 3)), torch.zeros(1, 3)).backward()
        torch.utils.swap_tensors(model.weight, nn.Parameter(torch.zeros(3, 3)))
        model(torch.ones(1, 3))
    assert model.weight.count_nonzero() == 0
    assert trace.complete
