"""torch.compile regions: the same values, no recompilation, kernels recorded, and the region counted as skipped."""

import subprocess
from functools import partial

import pytest
import torch
from torch import nn

import nbkit
from nbkit.compat.torch_versions import HIDES_BACKWARD
from tests.capture.models import aten, bits, record
from tests.capture.timed import named, timed
from tests.processes import PYTHON

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
    done = subprocess.run([*PYTHON, "-c", code], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert REASON in done.stdout
