"""Tests whose error ends a recording: the step's, or that of nbkit itself."""

import sys
from functools import partial

import pytest
import torch
from torch import nn

import nbkit
from nbkit.capture.profiler import kineto_events
from nbkit.capture.profiler import optime as optime_module
from nbkit.capture.profiler.ranges import Ranges
from nbkit.capture.step import optimizer_steps
from nbkit.views.summary.facts import facts
from tests.support.timed_names import timed_name

VERBS = {
    "optrace": nbkit.optrace,
    "optrace in Python": partial(nbkit.optrace, values="stats"),
    "opcheck": nbkit.opcheck,
    "opdiff": nbkit.opdiff,
    "opdiff against": partial(nbkit.opdiff, against="cpu:float64"),
    "optime": partial(nbkit.optime, stacks=True),
}


@pytest.fixture(params=["native", "python"])
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


class Raises(nn.Module):
    def forward(self, x):
        raise KeyError("mine")


class Unmade(nn.Module):
    def __init__(self):
        self.size = 1  # no super().__init__()

    def forward(self, x):
        return x


class Endless(nn.Module):
    def forward(self, x):
        return self(x + 1)


class Misses(nn.Module):
    def forward(self, x):
        return self.missing(x)


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ torch.ones(7)


def hooked():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: gradient.nothing)
    y.sum().backward()


def closed():
    SGD = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    SGD.step(lambda: 1 / 0)


class Refuses(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError("not here")


STEPS = {
    "raise in a module": lambda: Raises()(torch.ones(1)),
    "attribute of a module": lambda: Misses()(torch.ones(1)),
    "module without its __init__": lambda: Unmade()(torch.ones(1)),
    "endless recursion": lambda: Endless()(torch.ones(1)),
    "op in a module": lambda: nn.Linear(2, 2)(torch.ones(3, 3)),
    "op in torch's module": lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 3))(torch.ones(1, 2)),
    "op": lambda: torch.ones(2) @ torch.ones(3),
    "argument": lambda: torch.ones(2).sum(dim="x"),
    "function": lambda: torch.nn.functional.softmax(torch.ones(2), dim=7),
    "backward": lambda: torch.ones(2).sum().backward(),
    "custom backward": lambda: Cubed.apply(torch.ones(2, requires_grad=True)).sum().backward(),
    "hook": hooked,
    "closure": closed,
    "subclass": lambda: torch.ones(1).as_subclass(Refuses) + 1,
    "torch alone": partial(nn.Linear(2, 2), torch.ones(3, 3)),
    "assertion": lambda: torch._assert(False, "no"),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("verb", VERBS)
def test_an_error_of_the_step_is_the_step_s(verb, step):
    raised, trace = None, None
    try:
        with VERBS[verb]() as trace:
            step()
    except Exception as error:
        raised = error
    assert raised is not None
    assert trace.meta["error"]["type"] == type(raised).__name__
    assert trace.meta["error"]["failed_in_nbkit"] is None
    assert "nbkit itself" not in facts(trace).incomplete


def deeper(frames, work):
    return work() if not frames else deeper(frames - 1, work)


def test_endless_recursion_leaves_torch_as_it_was(recorder):
    """Wherever the limit is met: also where opdiff works on its own."""

    def run():
        with pytest.raises(RecursionError), nbkit.opdiff(against="cpu:float64"):
            Endless()(torch.ones(1))

    limit = sys.getrecursionlimit()
    for frames in range(6):
        deeper(frames, run)
        assert torch._C._is_torch_function_enabled()
        assert torch._C._len_torch_dispatch_stack() == 0
    assert sys.getrecursionlimit() == limit


def test_a_step_that_is_called_by_run_fails_itself():
    timing = nbkit.optime()
    with pytest.raises(RuntimeError):
        timing.run(partial(nn.Linear(2, 2), torch.ones(3, 3)))
    assert timing.trace.meta["error"]["failed_in_nbkit"] is None


def trained():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("verb", VERBS)
def test_a_failure_of_nbkit_in_the_step_is_told_as_such_and_the_ops_before_are_kept(verb, recorder, monkeypatch):
    monkeypatch.setattr(optimizer_steps, "step_name", None)
    monkeypatch.setattr(Ranges, "_run", None)
    with pytest.raises(TypeError), VERBS[verb]() as trace:
        torch.ones(2) + 1
        trained()
    error = trace.meta["error"]
    assert error["failed_in_nbkit"].startswith(
        ("nbkit/capture/step/optimizer_steps.py:", "nbkit/capture/profiler/ranges")
    )
    assert trace.ops["op"].isin(["aten.add.Tensor", timed_name("aten.add.Tensor")]).any()
    assert facts(trace).incomplete == (
        f"nbkit itself failed (TypeError: {error['message']}, at {error['failed_in_nbkit']}), not the recorded code; "
        "what was recorded until then is kept. Please open an issue with this text, the traceback and what "
        "`python -m nbkit info` prints."
    )


def test_the_traceback_of_such_a_failure_keeps_the_frames_that_show_it(monkeypatch):
    monkeypatch.setattr(optimizer_steps, "step_name", None)
    with pytest.raises(TypeError) as caught, nbkit.optrace():
        trained()
    assert caught.traceback[-1].path.name == "optimizer_steps.py"


@pytest.mark.parametrize("verb", VERBS)
def test_a_module_that_cannot_be_asked_runs_as_bare_and_is_counted(verb):
    class Shy(nn.Module):
        def named_modules(self, *args, **kwargs):
            raise KeyError("not for you")

        def forward(self, x):
            return nn.functional.relu(x)

    shy, inner = Shy(), nn.Linear(2, 2)
    with VERBS[verb]() as trace:
        result = shy(inner(torch.ones(1, 2)))
    assert result.shape == (1, 2)
    assert trace.meta["skipped"]["module calls not described: Shy (KeyError)"] == 1
    assert trace.modules["type"].tolist() == ["Linear"]
    assert trace.ops["op"].isin(["aten.relu.default", timed_name("aten.relu.default")]).any()


def test_a_failure_while_optime_switches_on_is_told_as_such(monkeypatch):
    monkeypatch.setattr(optime_module, "Collectives", None)
    timing = nbkit.optime(warmup=1)
    with pytest.raises(TypeError):
        timing.run(lambda: torch.ones(1))
    assert timing.trace.meta["error"]["failed_in_nbkit"].startswith("nbkit/capture/profiler/optime.py:")


def test_a_sentence_of_nbkit_is_no_failure():
    with pytest.raises(nbkit.TraceError), nbkit.optrace() as trace:
        nbkit.load("/no/such/folder")
    assert trace.meta["error"]["failed_in_nbkit"] is None


def test_torch_s_code_that_the_recorder_calls_is_the_recorder_s(monkeypatch):
    monkeypatch.setattr(kineto_events, "KINDS", None)
    with pytest.raises(TypeError) as caught, nbkit.optime():
        torch.ones(1)
    assert caught.traceback[-1].path.name == "kineto_events.py"
