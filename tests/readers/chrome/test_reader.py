"""Chrome traces that torch.profiler writes here hold what the profiler itself says of the same run."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

import nbkit
from tests.readers.exports import exported, profiled, slice_, threaded_step, training_step, written


@pytest.fixture(scope="module")
def threaded(tmp_path_factory):
    """Returns a profile of three training steps on three threads, and the trace of its export."""
    recorded = profiled(threaded_step, all_threads=True, record_shapes=True)
    return recorded, nbkit.load(exported(recorded, tmp_path_factory.mktemp("traces") / "t.json"))


def raw(recorded):
    """Returns the profiler's own events; `events()` leaves some out."""
    return [event for event in recorded.profiler.kineto_results.events() if event.activity_type() == "cpu_op"]


def test_every_op_is_there_once(threaded):
    recorded, trace = threaded
    aten = trace.ops[trace.ops["level"] == "aten"]
    expected = Counter(event.name().replace("::", ".") for event in raw(recorded) if event.name().startswith("aten::"))
    assert Counter(aten["op"]) == expected
    assert len(aten) > 300


def test_times_are_exact_to_the_nanosecond(threaded):
    recorded, trace = threaded
    expected = sorted((event.start_ns(), event.duration_ns()) for event in raw(recorded))
    ops = trace.ops[trace.ops["level"].isin(["aten", "range"]) & (trace.ops["op"] != "my forward")]
    start = (ops["start_us"] * 1e3).round().astype("int64")
    found = sorted(zip(start - start.min(), (ops["total_time_us"] * 1e3).round().astype("int64"), strict=True))
    assert found == [(begun - expected[0][0], duration) for begun, duration in expected]


def test_self_times_agree_with_key_averages(threaded):
    recorded, trace = threaded
    own = trace.ops.groupby("op")["self_time_us"].sum()
    for row in recorded.key_averages():
        if row.key in ("aten::mul", "aten::lerp_", "aten::addcdiv_", "aten::mm"):
            assert own[row.key.replace("::", ".")] == pytest.approx(row.self_cpu_time_total, abs=0.01)


def test_each_thread_is_told_apart_and_its_rows_nest(threaded):
    _, trace = threaded
    ops = trace.ops
    assert sorted(ops["thread"].unique()) == [0, 1, 2]
    inner = ops[ops["parent_id"].notna()]
    outer = ops.loc[inner["parent_id"].astype("int64")]
    assert (inner["thread"].to_numpy() == outer["thread"].to_numpy()).all()
    assert (inner["start_us"].to_numpy() >= outer["start_us"].to_numpy()).all()
    end, outer_end = (np.rint((rows["start_us"] + rows["total_time_us"]) * 1e3) for rows in (inner, outer))
    assert (end.to_numpy() <= outer_end.to_numpy()).all()


def test_backward_work_knows_its_forward_op(threaded):
    ops = threaded[1].ops
    pairs = {"AddmmBackward0": "aten.addmm", "ReluBackward0": "aten.relu", "SumBackward0": "aten.sum"}
    for node, op in pairs.items():
        rows = ops[ops["op"] == f"autograd::engine::evaluate_function: {node}"]
        assert rows["forward_op_id"].notna().all() and len(rows) >= 3
        forward = ops.loc[rows["forward_op_id"].astype("int64")]
        assert (forward["op"] == op).all()
        assert (forward["thread"].to_numpy() == rows["thread"].to_numpy()).all()


def test_phases_and_shapes(threaded):
    ops = threaded[1].ops
    assert set(ops.loc[ops["op"] == "aten.addcdiv_", "phase"]) == {"optimizer"}
    assert set(ops.loc[ops["op"] == "aten.relu", "phase"]) == {"forward"}
    assert "[[16], [4, 8], [8, 16], [], []]" in set(ops.loc[ops["op"] == "aten.addmm", "input_shapes"])
    assert set(ops.loc[ops["op"] == "torch.optim.AdamW.step", "level"]) == {"api"}


def test_memory_is_that_of_the_profiler(tmp_path):
    recorded = profiled(training_step, profile_memory=True)
    memory = nbkit.load(exported(recorded, tmp_path / "t.json")).memory
    expected = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert memory["delta_bytes"].sum() == sum(event.nbytes() for event in expected)
    assert len(memory) == len(expected) > 50
    assert set(memory["device"]) == {"cpu"}
    freed = memory[(memory["delta_bytes"] < 0) & memory["allocation_id"].notna()]
    assert memory["allocation_id"].isin(freed["allocation_id"]).sum() == 2 * len(freed)


def test_stacks_give_modules_and_source_lines(tmp_path):
    recorded = profiled(training_step, with_stack=True)
    trace = nbkit.load(exported(recorded, tmp_path / "t.json"))
    modules = trace.ops[trace.ops["level"] == "module"]
    assert modules["op"].tolist().count("Linear") >= 2 and "Block" in modules["op"].tolist()
    linear = trace.ops[trace.ops["op"] == "aten.linear"]
    assert set(trace.ops.loc[linear["parent_id"].dropna().astype("int64"), "op"]) == {"Linear"}
    assert linear["source"].str.contains("tests/readers/exports.py:").all()
    frames = trace.meta["skipped"]["Python frames (they tell the source lines)"]
    assert frames == sum(not event.name().startswith("nn.Module: ") for event in python_events(recorded)) > 100


def python_events(recorded):
    return [e for e in recorded.profiler.kineto_results.events() if e.activity_type() == "python_function"]


def test_gzip_is_told_from_the_content(tmp_path):
    events = [slice_("cpu_op", "aten::mm", 1.5, 2.25)]
    plain = nbkit.load(written(tmp_path / "a.json.gz", events))
    packed = nbkit.load(written(tmp_path / "a.txt", events, packed=True))
    pd.testing.assert_frame_equal(plain.ops, packed.ops)
    assert packed.ops["total_time_us"].tolist() == [2.25]


def test_a_bare_list_of_events_is_read_too(tmp_path):
    (tmp_path / "t.json").write_text('[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":5,"dur":1},\n]')
    assert nbkit.load(tmp_path / "t.json").ops["op"].tolist() == ["aten.mm"]


def test_events_of_unknown_form_are_counted(tmp_path):
    odd = [
        3,
        {"ph": "B", "name": "x"},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm"},
        slice_("dance", "x", 1.0, 1.0),
        {**slice_("cpu_op", "pause", 1.0, 1.0), "ph": "i"},
        {**slice_("cpu_op", "Record Window End", 1.0, 1.0), "ph": "i"},
        {**slice_("dance", "x", 1.0, 1.0), "ph": "s", "id": 1},
        {**slice_("ac2g", "x", 1.0, 1.0), "ph": "s", "id": 1},
    ]
    no_time = {**slice_("cpu_op", "aten::mm", 1.0, 1.0), "ts": "noon"}
    trace = nbkit.load(written(tmp_path / "t.json", [*odd, no_time, slice_("cpu_op", "aten::mm", 1.0, 1.0)]))
    assert len(trace.ops) == 1
    assert trace.meta["skipped"] == {
        "list entries that are no events": 1,
        "events of phase 'B', which torch.profiler does not write": 1,
        "events without a name, a time or a thread": 2,
        "events of the category 'dance'": 1,
        "instants 'pause'": 1,
        "arrows of the category 'dance'": 1,
    }


def test_names_of_old_torch_are_understood(tmp_path):
    op = slice_("Operator", "aten::mm", 1, 9, external_id=4)
    call = slice_("Runtime", "cudaLaunchKernel", 2, 3, correlation=8)
    kernel = slice_("Kernel", "gemm", 5, 6, pid=0, tid="stream 7", device=0, stream=7, correlation=8)
    ops = nbkit.load(written(tmp_path / "t.json", [op, call, kernel])).ops
    assert ops["level"].tolist() == ["aten", "runtime", "kernel"]
    assert ops["parent_id"].tolist()[1:] == [0, 1]


def test_a_block_that_was_named_by_hand_is_no_op(tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function("aten::mine"):
        torch.ones(2)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    ops = nbkit.load(tmp_path / "trace.json").ops.set_index("op")
    assert ops.loc["aten::mine", "level"] == "range"
    assert ops.loc["aten.ones", "level"] == "aten"


@pytest.mark.parametrize(
    ("place", "device"),
    [
        ({"Device Type": 0, "Device Id": -1}, "cpu"),
        ({"Device Type": 0}, "cpu"),
        ({"Device Type": 1, "Device Id": 0}, "cuda:0"),
        ({"Device Type": 1, "Device Id": 3}, "cuda:3"),
        ({"Device Type": 99}, "device99"),
    ],
)
def test_memory_is_that_of_its_device(tmp_path, place, device):
    memory = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7, "ts": 1.0, "s": "t"}
    memory["args"] = {"Bytes": 64, "Addr": 1, "Total Allocated": 64, **place}
    trace = nbkit.load(written(tmp_path / "t.json", [slice_("cpu_op", "aten::empty", 0.5, 1.0), memory]))
    assert trace.memory["device"].tolist() == [device]
