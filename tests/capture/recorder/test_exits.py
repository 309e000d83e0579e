"""After any exit no mode, hook, patch or import hook is left, and the trace so far is kept (see tests/fixtures.py)."""

import asyncio
import gc
import sys
import threading

import pytest
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer
from torch.utils._python_dispatch import _len_torch_dispatch_stack

import nbkit
from nbkit import OptionError
from nbkit.capture.native.library import library
from tests.capture.models import aten, record, recorded_ops


def installed():
    """Returns everything a recorder may have put somewhere."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    return {
        "call": nn.Module.__call__,
        "dispatch": _len_torch_dispatch_stack(),
        "observed": native.observing() if (native := library()) else 0,
        "function": torch._C._len_torch_function_stack(),
        "import": list(sys.meta_path),
        "before step": len(torch_optimizer._global_optimizer_pre_hooks),
        "after step": len(torch_optimizer._global_optimizer_post_hooks),
        "dynamo": getattr(dynamo, "_maybe_set_eval_frame", None),
    }


@pytest.fixture(autouse=True)
def nothing_installed():
    before = installed()
    yield
    assert installed() == before


def test_the_check_sees_a_running_recorder():
    before = installed()
    with nbkit.optrace():
        inside = installed()
    changed = {name for name in before if before[name] != inside[name]}
    assert changed >= {"call", "function", "before step"}
    assert changed & {"dispatch", "observed"}


class Boom(Exception):
    pass


@pytest.mark.parametrize("kind", [Boom, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_passes_and_the_trace_so_far_is_kept(kind):
    """Defect B19: no mode stays on for later cells."""
    error = kind("stop")
    with pytest.raises(kind) as raised, nbkit.optrace() as trace:
        torch.ones(2)
        raise error
    assert raised.value is error
    assert recorded_ops(trace) == {"aten.ones.default": 1}
    assert not trace.complete
    where = {"op_id": None, "source": None, "failed_in_nbkit": None}
    assert trace.meta["error"] == {"type": kind.__name__, "message": "stop", "message_values": None, **where}


@pytest.mark.parametrize("kind", [Boom, KeyboardInterrupt])
@pytest.mark.parametrize("place", ["module", "optimizer hook", "closure", "function", "backward"])
def test_an_exception_anywhere_leaves_nothing(kind, place):
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def boom(*args):
        raise kind("stop")

    with pytest.raises(kind, match="stop"), nbkit.optrace() as trace:
        if place == "module":
            model.register_forward_hook(boom)
        loss = model(torch.ones(1, 2)).sum()
        if place == "function":
            torch.ones(2).apply_(boom)
        if place == "backward":
            loss.register_hook(boom)
        loss.backward()
        if place == "optimizer hook":
            optimizer.register_step_pre_hook(boom)
        optimizer.step(boom if place == "closure" else None)
    assert (trace.complete, trace.meta["error"]["type"]) == (False, kind.__name__)


def test_a_generator_that_is_closed_ends_its_recording():
    traces = []

    def steps():
        with nbkit.optrace() as trace:
            traces.append(trace)
            for _ in range(3):
                yield torch.ones(1)

    running = steps()
    next(running)
    running.close()
    assert len(aten(traces[0])) == 1
    assert traces[0].meta["error"]["type"] == "GeneratorExit"


def test_recordings_that_end_in_the_order_they_began_leave_nothing():
    """Defect B18: whichever ends first takes away its own modes, not the other's."""
    first, second = nbkit.optrace(), nbkit.optrace()
    model, x = nn.Linear(2, 2), torch.ones(1, 2)
    a = first.__enter__()
    b = second.__enter__()
    model(x)
    first.__exit__(None, None, None)
    model(x)
    second.__exit__(None, None, None)
    assert len(aten(a, "aten.addmm")) == 1
    assert len(aten(b, "aten.addmm")) == 2


@pytest.mark.parametrize("is_on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(is_on):
    before = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        record(lambda: torch.ones(2) + 1)
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()


def test_nested_recordings_compose_and_the_outer_sees_all():
    model, x = nn.Linear(2, 2), torch.ones(1, 2)
    with nbkit.optrace() as outer:
        model(x)
        with nbkit.optrace(ops="addmm") as inner:
            model(x).sum().backward()
        model(x)
    assert recorded_ops(inner) == {"aten.addmm.default": 1}
    assert len(aten(outer, "aten.addmm")) == 3
    assert set(aten(outer, "aten.addmm")["module"]) == {""}
    assert outer.modules["calls"].tolist() == [3]


def test_a_recorder_is_used_once():
    recorder = nbkit.optrace()
    with recorder:
        pass
    with pytest.raises(OptionError, match=r"has been used already; make a new one"), recorder:
        pass


def test_another_thread_is_not_recorded_and_not_disturbed():
    model, outs = nn.Linear(2, 2), []

    def other():
        outs.append(model(torch.ones(1, 2)))

    def step():
        worker = threading.Thread(target=other)
        worker.start()
        worker.join()
        model(torch.zeros(1, 2))

    trace = record(step)
    assert len(outs) == 1
    assert len(aten(trace, "aten.addmm")) == 1
    assert trace.modules["calls"].tolist() == [1]


def test_recordings_in_two_threads_leave_nothing():
    model, traces, both = nn.Linear(2, 2), {}, threading.Barrier(2, timeout=20)

    def run(name, first):
        with nbkit.optrace() as traces[name]:
            both.wait()
            model(torch.ones(1, 2))
            if not first:
                both.wait()
        if first:
            both.wait()

    workers = [threading.Thread(target=run, args=(name, name == "a")) for name in "ab"]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert [len(aten(traces[name], "aten.addmm")) for name in "ab"] == [1, 1]


def test_recording_works_across_await():
    async def main():
        with nbkit.optrace() as trace:
            torch.ones(1)
            await asyncio.sleep(0)
            torch.zeros(1)
        return trace

    assert recorded_ops(asyncio.run(main())) == {"aten.ones.default": 1, "aten.zeros.default": 1}


def test_the_error_names_the_op_that_raised_it():
    def fails():
        return torch.ones(2) @ torch.ones(3)

    with pytest.raises(RuntimeError) as raised, nbkit.optrace() as trace:
        fails()
    error, row = trace.meta["error"], trace.ops.iloc[trace.meta["error"]["op_id"]]
    assert error["type"] == "RuntimeError"
    assert error["message"] == str(raised.value)
    assert row["op"] == "aten.dot.default"
    assert error["source"] == row["source"]
    assert "test_exits.py" in error["source"]


@pytest.mark.parametrize("late", ["plain", "api"])
def test_an_error_that_was_caught_is_not_the_one_that_ended_it(late):
    with pytest.raises(ValueError, match="mine|probability"), nbkit.optrace() as trace:
        with pytest.raises(RuntimeError):
            torch.ones(2) @ torch.ones(3)
        torch.ones(1)
        if late == "plain":
            raise ValueError("mine")
        torch.nn.functional.dropout(torch.ones(1), p=2)
    failed = trace.meta["error"]["op_id"]
    assert failed is None if late == "plain" else trace.ops["op"][failed] == "torch.nn.functional.dropout"


def test_the_traceback_shows_the_users_frames_only():
    with pytest.raises(RuntimeError) as raised, nbkit.optrace():
        nn.Linear(2, 2)(torch.ones(1, 3))
    files = [entry.path.parts for entry in raised.traceback]
    assert not [parts for parts in files if "capture" in parts and "nbkit" in parts and "tests" not in parts]


def test_warnings_are_those_of_the_bare_step(recwarn):
    """Defect B22 too: nothing is printed or warned about because of us."""
    record(lambda: nn.MultiheadAttention(4, 2).eval()(*[torch.ones(1, 1, 4)] * 3), values="stats")
    record(lambda: torch.ones(1).std(correction=0), values="stats")
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.cold
def test_importing_nbkit_prints_and_sets_nothing():
    """Defect B22."""
    import subprocess

    code = "import os; before = dict(os.environ); import nbkit; assert dict(os.environ) == before"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
