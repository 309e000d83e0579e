from sys import getrecursionlimit

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.capture.raw.recording import Recording
from nbkit.capture.replay.isolated import HEADROOM, isolated, timed_isolated


def test_profilers_see_only_what_the_step_runs():
    recording, x, troubles = Recording(), torch.ones(2), []
    with torch.autograd.profiler.profile() as profile:
        x.exp()
        result = timed_isolated(recording, x.neg, troubles.append)
        x.sin()
    assert [event.name for event in profile.function_events] == ["aten::exp", "aten::sin"]
    assert (result.tolist(), troubles) == ([-1.0, -1.0], [])
    ((start, end),) = recording.spent.array()
    assert end > start


def test_an_error_is_told_and_all_is_as_before():
    def work():
        inside.extend([getrecursionlimit() - before, torch.is_grad_enabled()])
        torch.set_grad_enabled(True)
        raise ValueError("mine")

    inside, troubles, before = [], [], getrecursionlimit()
    with torch.no_grad():
        assert timed_isolated(Recording(), work, troubles.append) is None
        assert (torch.is_grad_enabled(), getrecursionlimit()) == (False, before)
    assert inside == [HEADROOM, False]
    assert [str(error) for error in troubles] == ["mine"]


def test_autocast_is_off_inside_and_on_again_afterwards():
    x = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        with isolated():
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.bfloat16


class Passes(TorchDispatchMode):
    """Runs each op as it is."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_ops_that_run_inside_are_not_in_a_graph_that_is_traced_as_export_does():
    def step(x):
        y = x.sin()
        with isolated():
            y.cos()
        return y.exp()

    with Passes():
        graph = make_fx(step, pre_dispatch=True)(torch.ones(2)).graph
    targets = [str(node.target) for node in graph.nodes]
    assert [target for target in targets if target.startswith("aten.")] == ["aten.sin.default", "aten.exp.default"]
