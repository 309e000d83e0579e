"""Tests optime(memory=True): allocations and frees with the op that made them."""

import ctypes
from pathlib import Path

import pytest
import torch
from torch.profiler import profile

from nbkit.capture.profiler.kineto import ERROR, LIBRARIES, _log_level
from nbkit.schema import MEMORY
from tests.capture.models import train_step
from tests.capture.timed import timed, timed_name


def test_an_allocation_and_its_free():
    def step():
        x = torch.empty(1000, dtype=torch.float32)
        y = x + 1
        del x
        return y.sum().item()

    timed(step, memory=True)  # what was allocated while a profiler was on is known to torch later
    trace = timed(step, memory=True)
    memory, ops = MEMORY.check(trace.memory), trace.ops["op"]
    big = memory[memory["delta_bytes"].abs() == 4000]
    assert big["delta_bytes"].tolist() == [4000, 4000, -4000, -4000]
    first, second, *frees = big["allocation_id"].tolist()
    assert frees == [first, second]
    made = ["aten.empty.memory_format", "aten.add.Tensor"]
    assert ops.loc[big["op_id"].iloc[:2]].tolist() == [*map(timed_name, made)]
    assert ops.loc[big["op_id"].iloc[2:]].tolist() == ["step", "step"]
    assert memory["allocated_bytes"].tolist() == memory["delta_bytes"].cumsum().tolist()
    assert memory["allocated_bytes"].max() >= 8000


def test_the_bytes_are_those_of_torch_profiler():
    step = train_step("llama")
    step()
    with profile(profile_memory=True) as profiler:
        step()
    told = [event.nbytes() for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    memory = timed(step, memory=True).memory
    assert memory.loc[memory["delta_bytes"] > 0, "delta_bytes"].tolist() == [size for size in told if size > 0]


def test_memory_is_recorded_only_if_asked_for():
    trace = timed(train_step("mlp"))
    assert "memory" not in trace.frames
    with pytest.raises(AttributeError, match="memory"):
        _ = trace.memory
    assert len(timed(lambda: None, memory=True).memory) == 0


def test_times_are_on_the_clock_of_the_ops():
    trace = timed(train_step("mlp"), memory=True)
    op = trace.ops.loc[trace.memory["op_id"].dropna()]
    time = trace.memory.loc[trace.memory["op_id"].notna(), "time_us"].to_numpy()
    assert (op["start_us"].to_numpy() <= time).all()
    assert (time <= (op["start_us"] + op["total_time_us"]).to_numpy()).all()


def has_log_level() -> bool:
    libraries = [path for path in (Path(torch.__file__).parent / "lib").iterdir() if path.name in LIBRARIES]
    return any(hasattr(ctypes.CDLL(str(path)), "FLAGS_caffe2_log_level") for path in libraries)


@pytest.mark.skipif(not has_log_level(), reason="this build of torch does not show the level of its C++ log")
def test_warnings_of_cpp_are_held_back_for_as_long_as_it_takes(monkeypatch):
    level, inside = _log_level(), []
    monkeypatch.setattr(level, "value", ERROR - 1)
    timed(lambda: inside.append(level.value), memory=True)
    assert (inside, level.value) == ([ERROR], ERROR - 1)
