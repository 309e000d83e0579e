"""start() and stop() record what a `with` block would, across cells, and refuse what it cannot be."""

from threading import Thread

import pytest
import torch

import nbkit
from nbkit import OptionError
from tests.fixtures import left_behind

MAKERS = {
    "optrace": nbkit.optrace,
    "opdiff": nbkit.opdiff,
    "opcheck": nbkit.opcheck,
    "opaudit": nbkit.opaudit,
    "opcost": nbkit.opcost,
    "opfallback": nbkit.opfallback,
    "opstable": nbkit.opstable,
    "opcast": lambda: nbkit.opcast("float64"),
    "optime": nbkit.optime,
    "opdoctor": nbkit.opdoctor,
}


def step(x):
    return (x @ x).relu().sum()


def aten(trace):
    return trace.ops[trace.ops["level"] == "aten"]["op"].tolist()


@pytest.mark.parametrize("name", MAKERS)
def test_the_trace_is_that_of_a_block(name):
    x = torch.randn(4, 4)
    with MAKERS[name]() as expected:
        step(x)
    recorder = MAKERS[name]()
    assert recorder.start() is recorder
    step(x)
    trace = recorder.stop()
    assert trace is recorder.trace
    assert trace.meta["verb"] == name
    assert aten(trace) == aten(expected) != []


def test_a_capture_is_whole(tmp_path):
    x = torch.randn(4, 4)
    capture = nbkit.opcapture(tmp_path / "calls").start()
    product = x @ x
    assert len(capture.stop().captures) == 1
    assert torch.equal(nbkit.call_of(tmp_path / "calls", 0).results[0].actual, product)


def test_a_hook_gives_its_calls():
    hook = nbkit.ophook("torch.Tensor.relu", nbkit.optrace).start()
    torch.randn(3).relu()
    assert len(hook.stop().traces) == 1
    torch.randn(3).relu()
    assert len(hook.hook.traces) == 1


def test_an_exception_between_ends_its_own_cell_alone():
    recorder, model = nbkit.optrace().start(), torch.nn.Linear(3, 3)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        model(torch.randn(2, 4))
    torch.randn(3).sigmoid()
    trace = recorder.stop()
    assert trace.complete
    ops = trace.ops[trace.ops["level"] == "aten"].set_index("op")
    assert ops.loc["aten.addmm.default", ["status", "module"]].tolist() == ["raised", ""]
    assert ops.loc["aten.sigmoid.default", ["status", "module"]].isna().all()


def test_starting_twice_is_refused_and_the_recording_goes_on():
    before = left_behind()
    recorder = nbkit.optrace().start()
    with pytest.raises(OptionError, match=r"This optrace is recording already, since start\(\); call its stop\(\)"):
        recorder.start()
    with pytest.raises(OptionError, match=r"Another optrace is recording, .* or nbkit\.optrace\.started\(\)\.stop\(\)"):
        nbkit.optrace().start()  # the cell ran once more
    assert repr(recorder) == "<optrace, recording since start(); stop() gives its trace>"
    assert nbkit.opcheck.started() is None
    torch.ones(2).exp()
    assert aten(nbkit.optrace.started().stop())[-1] == "aten.exp.default"
    assert left_behind() == before
    assert nbkit.optrace.started() is None


def test_stopping_what_does_not_run_is_refused():
    recorder = nbkit.optrace()
    with pytest.raises(OptionError, match=r"not recording; call start\(\) of a new optrace first"):
        recorder.stop()
    recorder.start().stop()
    with pytest.raises(OptionError, match=r"not recording; call start\(\) of a new optrace first"):
        recorder.stop()
    with pytest.raises(OptionError, match="used already; make a new one"):
        recorder.start()
    with nbkit.optrace() as trace, pytest.raises(OptionError, match="not recording"):
        recorder.stop()
    assert trace.complete


def test_another_thread_cannot_stop_it():
    recorder, said = nbkit.optrace().start(), []

    def elsewhere():
        with pytest.raises(OptionError, match=r"was started in another thread; call stop\(\) there") as error:
            recorder.stop()
        said.append(error)

    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    torch.ones(2).exp()
    assert len(said) == 1
    assert aten(recorder.stop())[-1] == "aten.exp.default"


def test_recordings_overlap():
    first = nbkit.optrace().start()
    torch.ones(2).exp()
    second = nbkit.opcheck().start()
    torch.ones(2).sin()
    first_ops = aten(first.stop())
    torch.ones(2).cos()
    assert [op.split(".")[1] for op in first_ops] == ["ones", "exp", "ones", "sin"]
    assert [op.split(".")[1] for op in aten(second.stop())] == ["ones", "sin", "ones", "cos"]
