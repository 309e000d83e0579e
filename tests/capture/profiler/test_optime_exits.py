"""Tests how optime ends, its options and what it says; nothing of the profiler reaches the user."""

import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch._C._autograd import _KinetoEvent
from torch.profiler import profile

import nbkit
from nbkit import OptionError
from nbkit.capture.profiler import kineto
from nbkit.capture.profiler.kineto_events import before_the_end
from nbkit.timeline import HOST, KERNEL, RUNTIME, Events
from tests.capture.models import record, train_step
from tests.capture.timed import level, named, timed, timed_name


def test_after_an_exception_the_trace_so_far_is_kept():
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), nbkit.optime(name="broken") as trace:
        nn.Linear(3, 3)(x)
        x @ x
    assert not trace.complete
    assert trace.meta["error"]["type"] == "RuntimeError"
    assert len(named(trace, "aten.addmm.default")) == 1
    assert level(trace, "module")["op"].tolist() == ["Linear"]


def test_the_exception_shows_the_users_lines_only():
    def fail(module, args):
        raise ValueError("no")

    model = nn.Linear(2, 2)
    model.register_forward_pre_hook(fail)
    with pytest.raises(ValueError, match="no") as caught, nbkit.optime():
        model(torch.ones(2))
    assert not [entry for entry in caught.traceback if "nbkit/capture" in str(entry.path)]


def test_a_profiler_that_runs_already_is_one_clear_sentence():
    with profile(), pytest.raises(OptionError, match="A profiler is running in this thread already"), nbkit.optime():
        pass
    with nbkit.optime() as outer:
        with pytest.raises(OptionError, match="end it first"), nbkit.optime():
            pass
        torch.ones(1)
    assert len(named(outer, "aten.ones.default")) == 1


@pytest.mark.skipif(
    not hasattr(_KinetoEvent, "activity_type"),
    reason="in torch 2.11 and older no profiler, torch's own neither, works again after a start that failed",
)
def test_a_failed_start_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(kineto, "_enable_profiler", lambda *_: (_ for _ in ()).throw(RuntimeError("no engine")))
    with pytest.raises(RuntimeError, match="no engine"), nbkit.optime():
        pass
    monkeypatch.undo()
    assert len(timed(lambda: torch.ones(1)).ops) == 4


def test_nothing_of_the_profiler_reaches_the_terminal(capfd):
    step = train_step("mlp")
    for memory in (False, True):
        timed(step, memory=memory, stacks=True)
    assert capfd.readouterr() == ("", "")


def test_what_the_step_prints_still_arrives(capfd):
    timed(lambda: os.write(2, b"from the step\n"), memory=True)
    assert capfd.readouterr().err == "from the step\n"


def test_optrace_and_optime_record_the_same_step():
    step = train_step("mlp")
    step()  # the first step makes the optimizer's state
    trace, seen = timed(step), record(step)
    names = set(level(seen, "aten")["op"]) - {"aten.detach.default"}
    assert set(level(trace, "aten")["op"]) >= {*map(timed_name, names)}
    assert len(level(trace, "module")) == 8


def test_other_threads_of_the_user_are_not_recorded():
    def step():
        thread = threading.Thread(target=lambda: nn.Linear(2, 2)(torch.ones(2)))
        thread.start()
        thread.join()

    assert timed(step).ops["op"].tolist() == ["step"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda:x"}, "device='cuda:x' is not there: torch sees only the CPU"),
        ({"device": "cdua"}, "device='cdua' is not known; did you mean 'cuda'"),
        ({"warmup": -1}, "warmup must be a whole number from 0 up, got -1"),
        ({"repeats": 1.5}, "repeats must be a whole number from 0 up, got 1.5"),
        ({"device": torch.device("cuda")}, "is not there: torch sees only the CPU"),
        ({"device": 3}, "device=3 is not known; known are cpu, cuda"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(options, message, monkeypatch):
    # Another test may have registered the simulated device, or there is a real one.
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.raises(OptionError) as caught:
        nbkit.optime(**options)
    assert message.lower() in str(caught.value).lower()


def test_what_cannot_be_called_is_refused_before_anything_is_recorded():
    with pytest.raises(OptionError, match=r"^run\(\) calls the step itself, and this is a Tensor; give it a function"):
        nbkit.optime(repeats=2).run(torch.ones(1))


def test_switches_are_true_or_false_as_anywhere_in_python():
    timing = nbkit.optime(memory=1, device=torch.device("cpu"))
    with timing:
        torch.ones(1)
    assert len(timing.trace.memory) > 0


def test_an_optime_is_used_once():
    timing = nbkit.optime()
    with timing:
        pass
    with pytest.raises(OptionError, match="used already"), timing:
        pass


def test_compiled_regions_are_not_compiled_again():
    graphs = []
    compiled = torch.compile(
        nn.Sequential(nn.Linear(3, 3), nn.ReLU()), backend=lambda graph, _: graphs.append(graph) or graph
    )
    x = torch.ones(2, 3)
    bare, out = compiled(x), []
    trace = timed(lambda: out.append(compiled(x)), stacks=True)
    torch._dynamo.reset()
    assert len(graphs) == 1
    assert torch.equal(out[0], bare)
    assert len(named(trace, "aten.addmm.default")) == 1
    assert [reason for reason in trace.meta["skipped"] if reason.startswith("torch.compile region")]


def test_a_device_that_has_failed_does_not_keep_the_profiler_on(monkeypatch):
    def fail():
        raise RuntimeError("CUDA error: device-side assert triggered\nmore")

    monkeypatch.setattr(torch.cuda, "synchronize", fail)
    engine = kineto.Kineto(kineto.KinetoOptions(memory=False, shapes=False, device="cuda"))
    engine.start()
    torch.ones(1)
    names = [event.name() for event in engine.stop().events()]
    assert "aten::ones" in names
    assert "waiting for it failed: CUDA error: device-side assert triggered" in engine.notes[-1]
    assert len(timed(lambda: torch.ones(1), device="cpu").ops) == 4


def test_a_process_without_stderr_can_record(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert len(timed(lambda: torch.ones(1)).ops) == 4


def test_a_process_whose_stderr_is_closed_can_record():
    saved, notes, ran = os.dup(2), [], []
    os.close(2)
    try:
        with kineto.muted_stderr(notes):
            ran.append(torch.ones(1))
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    assert (len(ran), notes) == (1, [])


def test_what_the_user_has_written_to_stderr_before_is_no_note_of_kineto(monkeypatch, capfd):
    notes = []
    with open(2, "w", closefd=False) as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        print("of the user", file=stderr)
        with kineto.muted_stderr(notes):
            os.write(2, b"of Kineto\n")
            stderr.flush()
    assert (capfd.readouterr().err, notes) == ("of the user\n", ["of Kineto"])


@pytest.mark.parametrize(("there", "key"), [("cuda", "cuda"), ("npu", "privateuse1")])
def test_the_device_that_is_there_may_be_named_or_left_to_be_found(there, key, monkeypatch):
    monkeypatch.setattr(kineto, "current_accelerator", lambda: SimpleNamespace(type=there))
    assert [kineto.device_to_record(device) for device in (None, there, f"{there}:1", "cpu")] == [key, key, key, None]
    with pytest.raises(OptionError, match=f"is not there: torch sees {there}"):
        kineto.device_to_record("xpu")


def test_how_the_recording_waits_for_the_device_is_no_row_of_the_step():
    """Its own cudaDeviceSynchronize comes after the step; work of the device that ends later is the step's."""
    events = Events(
        name=["step", "cudaLaunchKernel", "gemm", "cudaDeviceSynchronize"],
        kind=np.array([HOST, RUNTIME, KERNEL, RUNTIME], dtype=np.int8),
        start_ns=np.array([100, 120, 230, 210]),
        duration_ns=np.array([100, 10, 50, 70]),
        thread=np.ones(4, dtype=np.int64),
    )
    assert before_the_end(events, "step").name == ["step", "cudaLaunchKernel", "gemm"]
    assert before_the_end(events, "another").name == events.name
