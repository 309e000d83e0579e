"""Charts of a measured step: its roofline, and its memory by who allocated it."""

from functools import cache

import pandas as pd
import pytest
import torch
from torch import nn

import nbkit
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.views.plots import plot_memory, plot_roofline
from tests.support.fakes import small_trace

PEAKS = {"name": "this machine", "flops_per_s": {"float32": 1e11, "float64": 5e10}, "bytes_per_s": 1e10}


@cache
def timed() -> Trace:
    model, x = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)), torch.randn(16, 64)
    return nbkit.optime(shapes=True, memory=True, repeats=3).run(lambda: model(x).sum().backward())


def with_peaks() -> Trace:
    return Trace(timed().frames, {**timed().meta, "measured_device": PEAKS})


def test_marks_of_a_measured_roofline_are_flops_over_time_and_bytes() -> None:
    figure = plot_roofline(with_peaks())
    marks = figure.data[-1]
    ops = timed().ops
    (call,) = ops.index[(ops["op"] == "aten.addmm.default") & (ops["input_shapes"].str.contains("64, 32"))]
    flops, moved = 2 * 16 * 64 * 32, 4 * (32 + 16 * 64 + 64 * 32 + 16 * 32)
    places = dict(zip(marks.x, marks.y, strict=True))
    assert places[flops / moved] == pytest.approx(flops / ops["total_time_us"][call] * 1e6)
    assert "Roofline of the measured step on this machine" in figure.layout.title.text


def test_the_roofs_are_those_that_were_measured_in_the_dtypes_of_the_step() -> None:
    bandwidth, compute, _ = plot_roofline(with_peaks()).data
    assert (bandwidth.name, compute.name) == ("9.31 GiB/s", "float32: 100 GFLOP/s")
    assert compute.y == (1e11, 1e11) and bandwidth.y[1] == pytest.approx(1e11)


def test_without_a_calibration_there_are_no_roofs_and_the_picture_says_so() -> None:
    meta = {key: value for key, value in timed().meta.items() if key != "measured_device"}
    figure = plot_roofline(Trace(timed().frames, meta))
    assert [series.name for series in figure.data] == ["measured"]
    assert "No roofs: nbkit.calibrate() was not run on this machine before" in figure.layout.title.text
    with pytest.raises(OptionError, match="no ops of known FLOPs with their times; optime with shapes records"):
        plot_roofline(small_trace())


def test_optime_keeps_what_calibrate_measured_before(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path))
    device = nbkit.calibrate(device="cpu", seconds=0.0, largest_bytes=2**14)
    trace = nbkit.optime(shapes=True).run(lambda: torch.ones(4, 4) @ torch.ones(4, 4))
    known = trace.meta["measured_device"]
    assert known == {"name": device.name, "flops_per_s": device.flops_per_s, "bytes_per_s": device.bytes_per_s}


def test_memory_of_a_measured_step_is_stacked_up_to_the_peak_with_who_allocated() -> None:
    figure = plot_memory(timed())
    memory = timed().memory
    stack = [sum(values) for values in zip(*(area.y for area in figure.data), strict=True)]
    known = memory["allocated_bytes"] - min(0, memory["allocated_bytes"].min())
    assert max(stack) * 2**10 == pytest.approx(known.max())
    assert "kept from forward" in [area.name for area in figure.data] and figure.layout.xaxis.title.text == "time (ms)"
    first = memory[memory["delta_bytes"] > 0].iloc[0]
    op = timed().ops["op"][first["op_id"]].removeprefix("aten.").removesuffix(".default")
    assert any(f"by {op} in " in text and text.split("; ")[1][0] == "+" for text in figure.data[-1].text)
    assert {"forward", "backward", "peak"} <= {note.text for note in figure.layout.annotations}


def test_of_several_devices_that_with_the_highest_peak_is_drawn() -> None:
    memory = timed().memory
    other = memory.assign(device="cuda:0", delta_bytes=10 * memory["delta_bytes"])
    both = pd.concat([memory, other.assign(allocated_bytes=10 * memory["allocated_bytes"])], ignore_index=True)
    both["allocation_id"] += len(memory) * both.index.to_series().ge(len(memory)).astype(int)
    figure = plot_memory(Trace({**timed().frames, "memory": both}, timed().meta))
    assert "cuda:0" in figure.layout.title.text
