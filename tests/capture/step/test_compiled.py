"""torch.compile regions: the same values, no recompilation, kernels recorded, and the region counted as skipped."""

import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import nn
from torch._dynamo.callback import callback_handler
from torch._dynamo.utils import counters

import nbkit
from nbkit.capture.native.library import library
from nbkit.compat.torch_versions import HIDES_BACKWARD
from tests.capture.models import aten, bits, record
from tests.capture.timed import named, timed

REASON = "torch.compile region"


class Backend:
    """Counts how often dynamo hands over a graph, and runs it as it is."""

    def __init__(self):
        self.calls = 0

    def __call__(self, graph, inputs):
        self.calls += 1
        return graph.forward


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def regions(trace):
    return sum(count for reason, count in trace.meta["skipped"].items() if reason.startswith(REASON))


def test_a_region_compiled_before_is_not_compiled_again():
    """Defect B14."""
    model, backend, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), Backend(), torch.ones(2, 3)
    compiled = torch.compile(model, backend=backend)
    bare, outs = compiled(x), []
    trace = record(lambda: outs.extend([compiled(x), compiled(x)]))
    after = compiled(x)
    assert backend.calls == 1
    assert bits(outs) == bits([bare, bare])
    assert bits([after]) == bits([bare])
    assert regions(trace) == 2
    assert len(aten(trace, "aten.addmm")) == 2


# Those that take a dispatch mode.
COMPILES = pytest.mark.skipif(HIDES_BACKWARD, reason="torch 2.8 and older do not compile under a dispatch mode")
WITH_MODE = [pytest.param(verb, marks=COMPILES) for verb in (partial(nbkit.optrace, values="stats"), nbkit.opdiff)]


@pytest.mark.parametrize("verb", [nbkit.optrace, *WITH_MODE])
def test_a_region_compiled_inside_a_recording_is_used_after_it(verb):
    backend, x = Backend(), torch.ones(2, 3)
    compiled = torch.compile(lambda x: x.sin() + x.cos(), backend=backend)
    with verb() as trace:
        out = compiled(x)
    assert backend.calls == 1
    assert bits([out]) == bits([compiled(x)])
    assert backend.calls == 1
    assert regions(trace) == 1


def test_nested_recordings_step_aside_together():
    model, backend, x = nn.Linear(3, 3), Backend(), torch.ones(2, 3)
    compiled = torch.compile(model, backend=backend)
    compiled(x)
    with nbkit.optrace() as outer, nbkit.optrace() as inner:
        compiled(x)
    assert backend.calls == 1
    assert (regions(outer), regions(inner)) == (1, 1)


def trained(backend, steps=3):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    compiled = torch.compile(model, backend=backend) if backend else model
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = compiled(torch.randn(3, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        yield loss.detach()
    yield from model.parameters()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training_a_compiled_model_computes_the_same_bits(backend):
    bare = bits(trained(backend))
    torch._dynamo.reset()
    traced = []
    trace = record(lambda: traced.extend(bits(trained(backend))))
    assert traced == bare
    assert regions(trace) == 3
    assert aten(trace)["phase"].isin(["forward", "backward", "optimizer", "other"]).all()
    assert len(aten(trace, "aten.addmm")) == 6


def test_optime_has_a_row_for_the_region_and_its_ops_in_it():
    model, x = nn.Linear(3, 3), torch.ones(2, 3)
    compiled = torch.compile(model, backend="aot_eager")
    compiled(x).sum().backward()
    trace = timed(lambda: compiled(x).sum().backward())
    (region,) = named(trace, "Torch-Compiled Region: 0/0").to_dict("records")
    (forward,) = named(trace, "CompiledFunction").to_dict("records")
    assert (forward["parent_id"], region["phase"]) == (region["op_id"], "forward")
    assert named(trace, "aten.addmm.default")["parent_id"].tolist() == [forward["op_id"]]
    assert named(trace, "CompiledFunctionBackward")["phase"].tolist() == ["backward"]
    assert regions(trace) == 1


class Branching(nn.Module):
    """Asks for a value, where torch.compile breaks its graph: what runs there is looked at by dynamo."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.norm(torch.relu(self.first(x)))
        return self.last(hidden + 1 if (hidden.square().sum() > 0).item() else hidden).sum()


def with_graph_break():
    """Returns the training step of a compiled model with a graph break, and what it changes."""
    model, x = Branching(), torch.randn(4, 8)
    compiled, optimizer = torch.compile(model, backend="aot_eager"), torch.optim.SGD(model.parameters(), 0.0)

    def step():
        optimizer.zero_grad()
        loss = compiled(x)
        loss.backward()
        optimizer.step()
        return bits([loss, *(parameter.grad for parameter in model.parameters())])

    return step


def compiled_optimizer():
    """Returns a step whose optimizer is compiled, where torch's hooks of optimizers are guarded by dynamo."""
    model, x = nn.Linear(8, 8), torch.randn(4, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    compiled = torch.compile(lambda: optimizer.step(), backend="aot_eager")

    def step():
        model.zero_grad()
        loss = model(x).sum()
        loss.backward()
        compiled()
        return bits([loss, *model.parameters()])

    return step


@pytest.fixture
def compilations():
    """Is a list with an entry for each frame that dynamo began to compile."""
    begun = []
    callback_handler.register_start_callback(begun.append)
    yield begun
    callback_handler.remove_start_callback(begun.append)


RECORDED = {
    "optrace": nbkit.optrace,
    "statistics": partial(nbkit.optrace, values="stats"),
    "threads": partial(nbkit.optrace, threads="all"),
    "optime": nbkit.optime,
    "memory": partial(nbkit.optime, memory=True),
    "opcheck": nbkit.opcheck,
    "opdiff": nbkit.opdiff,
    "modules": partial(nbkit.opdiff, level="module"),
    "opaudit": nbkit.opaudit,
    "opfallback": partial(nbkit.opfallback, ops="aten.addmm"),
    "opstable": nbkit.opstable,
}


@pytest.mark.parametrize("verb", [name for name in RECORDED if name != "threads" or library()])
def test_no_verb_compiles_behind_a_graph_break(verb, compilations):
    step = with_graph_break()
    bare = [step() for _ in range(3)][-1]
    compilations.clear()
    with RECORDED[verb]():
        recorded = step()
    after = step()
    assert compilations == []
    assert recorded == after == bare


@pytest.mark.parametrize("verb", [partial(nbkit.opcast, "bfloat16"), partial(nbkit.opcast, "bfloat16", dry_run=True)])
def test_a_cast_compiles_nothing(verb, compilations):
    step = with_graph_break()
    for _ in range(3):
        step()
    compilations.clear()
    with verb():
        step()
    step()
    assert compilations == []


def test_capturing_compiles_nothing(tmp_path, compilations):
    step = with_graph_break()
    bare = [step() for _ in range(3)][-1]
    compilations.clear()
    with nbkit.opcapture(tmp_path / "calls"):
        assert step() == bare
    assert compilations == []


def test_dynamo_looks_at_no_frame_of_a_recording():
    step = with_graph_break()
    for _ in range(3):
        step()
    before = counters["frames"]["total"]
    with nbkit.optrace():
        step()
    assert counters["frames"]["total"] == before


@pytest.mark.parametrize("verb", ["optrace", "statistics", "opcheck", "opdiff"])
def test_a_compiled_optimizer_is_not_compiled_again(verb, compilations):
    step = compiled_optimizer()
    bare = [step() for _ in range(3)][-1]
    compilations.clear()
    with RECORDED[verb]() as trace:
        recorded = step()
    after = step()
    assert compilations == []
    assert recorded == after == bare
    assert regions(trace) == 1


def test_what_follows_a_region_is_recorded_as_ever():
    model, x = nn.Linear(3, 3), torch.ones(2, 3)
    compiled = torch.compile(lambda x: x * 2, backend="eager")
    compiled(x)
    trace = record(lambda: model(compiled(model(x))))
    linear = trace.ops[trace.ops["op"] == "torch.nn.functional.linear"]
    assert linear["module"].tolist() == ["", ""]
    assert trace.modules["calls"].tolist() == [2]


def test_an_error_in_a_region_passes_and_leaves_the_recorder_working():
    def fails(x):
        return x @ torch.ones(7)

    compiled, model = torch.compile(fails, backend="eager"), nn.Linear(3, 3)
    with nbkit.optrace() as trace:
        with pytest.raises(Exception, match="size|shape|mismatch"):
            compiled(torch.ones(2, 3))
        model(torch.ones(1, 3))
    assert "torch.nn.functional.linear" in set(trace.ops["op"])
    assert trace.modules["calls"].tolist() == [1]


@pytest.mark.cold
def test_dynamo_first_imported_inside_a_recording_is_watched_and_keeps_nothing():
    code = """
import sys, gc, weakref, torch, nbkit
assert "torch._dynamo.eval_frame" not in sys.modules
recorder = nbkit.optrace()
with recorder as trace:
    import torch._dynamo
    torch.nn.Linear(2, 2)(torch.ones(2))  # before any region, which puts everything in place again
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    recording = weakref.ref(recorder.recording)
print(trace.meta["skipped"])
assert trace.modules["type"].tolist() == ["Linear"]
assert torch._dynamo.utils.unpatched_nn_module_call is torch.nn.Module.__call__
gc.collect()
assert recording() is None
assert type(recorder).__module__ not in {type(finder).__module__ for finder in sys.meta_path}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert REASON in done.stdout
