"""Ids are per process: kernels of merged ranks belong to the rank that launched them."""

import pytest

import nbkit
from tests.readers.cuda_trace import device
from tests.readers.exports import slice_, written


def rank(number, pid, kernel_pid, count=4, sizes=(10.0, 20.0)):
    """Makes the events of a rank: `count` ops, each with one kernel that takes as long as the rank's size says."""
    host, work = [], []
    for at in range(count):
        start, key = 100.0 * at + 7.0 * number, at + 1
        host.append(slice_("cpu_op", "aten::mm", start, 40.0, pid=pid, tid=pid, External_id=key))
        launch = slice_("cuda_runtime", "cudaLaunchKernel", start + 5, 4.0, pid=pid, tid=pid, correlation=key)
        work.append(launch | {"args": {"External id": key, "correlation": key}})
        kernel = device("kernel", "gemm", start + 50, sizes[number], stream=7, correlation=key, External_id=key)
        work.append(kernel | {"pid": kernel_pid})
    return host + work


def device_times(trace):
    ops = trace.ops[trace.ops["op"] == "aten.mm"]
    return ops.sort_values("start_us")["self_device_time_us"].tolist()


@pytest.mark.parametrize(
    ("first", "second"),
    [((100, 0), (200, 0)), ((100, 0), (200, 1)), (("[TP00] 9", "[TP00] 0"), ("[TP01] 9", "[TP01] 0"))],
)
@pytest.mark.parametrize("lost", [0, 1])
def test_kernels_go_to_their_rank(tmp_path, first, second, lost):
    """A kernel that the second rank lost makes none of the first rank's its own."""
    events = [*rank(0, *first), *rank(1, *second)]
    trace = nbkit.load(written(tmp_path / "t.json", events[: len(events) - lost]))
    assert device_times(trace) == [10.0, 20.0] * 3 + [10.0, 0.0 if lost else 20.0]
    assert any("use the same ids" in note for note in trace.meta["notes"])


def test_labels_tell_ranks_apart_in_order_of_time(tmp_path):
    events = [*rank(1, "[TP01] 9", "[TP01] 0"), *rank(0, "[TP00] 9", "[TP00] 0")]
    events.sort(key=lambda event: (event["ts"], -event["dur"]))
    assert device_times(nbkit.load(written(tmp_path / "t.json", events))) == [10.0, 20.0] * 4


def test_ranks_that_share_a_pid_are_told_apart_and_noted(tmp_path):
    trace = nbkit.load(written(tmp_path / "t.json", [*rank(0, 100, 0), *rank(1, 100, 0)]))
    assert device_times(trace) == [10.0, 20.0] * 4
    assert trace.meta["notes"][0].startswith("2 ranks share the process id 100 in this file")
    mm = trace.ops[trace.ops["op"] == "aten.mm"]
    assert mm["parent_id"].isna().all() and mm["thread"].nunique() == 2


def test_ranks_of_one_pid_in_order_of_time_are_noted(tmp_path):
    events = sorted([*rank(0, 100, 0), *rank(1, 100, 0)], key=lambda event: (event["ts"], -event["dur"]))
    note, *_ = nbkit.load(written(tmp_path / "t.json", events)).meta["notes"]
    assert note.startswith("Ranks share the process id 100 in this file, their events mixed in order of time")


def test_one_rank_has_no_note(tmp_path):
    events = rank(0, 100, 0)
    driver = {**events[-2], "cat": "cuda_driver", "ts": events[-2]["ts"] + 6}  # of the same correlation
    trace = nbkit.load(written(tmp_path / "t.json", [*events, driver]))
    assert trace.meta["notes"] == [] and device_times(trace) == [10.0] * 4


def test_kernels_that_overlap_on_a_stream_are_noted(tmp_path):
    """Two of 1.6 s, 0.6 ms apart, and 18 of 80 us between: 3.20 s within 1.60 s."""
    ends = [1.6e6 if at in (3, 9) else 80.0 for at in range(20)]
    events = [device("kernel", f"k{at}", 100.0 * at, end, stream=7, correlation=at + 1) for at, end in enumerate(ends)]
    (note,) = nbkit.load(written(tmp_path / "t.json", events)).meta["notes"]
    assert note.startswith("Kernels overlap: 3.20 s of device time within 1.60 s on stream 7")


@pytest.mark.parametrize("others", [[0.0], [5.0, 6.0]])
@pytest.mark.parametrize("begin", [1.7e15, 5.1e12])  # since 1970, and since a machine began 59 days ago
def test_an_event_at_time_0_is_left_out_and_counted(tmp_path, others, begin):
    events = [slice_("cpu_op", "aten::mm", begin + 100 * at, 40.0) for at in range(4)]
    odd = [slice_("cpu_op", "aten::odd", time, 5.0) for time in others]
    trace = nbkit.load(written(tmp_path / "t.json", [*events, *odd]))
    assert trace.meta["skipped"] == {"events on another clock: some begin near 0, some days later": len(odd)}
    assert trace.meta["wall_us"] == 340.0 and len(trace.ops) == 4


def ascend(at):
    start = 1_715_583_600_123_456 + at * 200
    arrow = {"name": "async_npu", "id": f"{start}.125", "cat": "async_npu"}
    return [
        {
            "ph": "X",
            "name": "aten::mm",
            "pid": 9,
            "tid": 9,
            "ts": f"{start}.125",
            "dur": 90.5,
            "cat": "cpu_op",
            "args": {},
        },
        {"ph": "X", "name": "Node@launch", "pid": 20, "tid": 1, "ts": f"{start + 60}.5", "dur": 12.75, "args": {}},
        {"ph": "X", "name": "MatMulV2", "pid": 30, "tid": 2, "ts": f"{start + 100}.875", "dur": 55.25}
        | {"args": {"Task Type": "AI_CORE", "Stream Id": 2, "Task Id": at}},
        {"ph": "s", "bp": "e", "pid": 9, "tid": 9, "ts": f"{start}.125", **arrow},
        {"ph": "f", "bp": "e", "pid": 30, "tid": 2, "ts": f"{start + 100}.875", **arrow},
    ]


def test_lists_of_ascend_have_their_kernels(tmp_path):
    path = tmp_path / "trace_view.json"
    path.write_text(str([*ascend(0), *ascend(1)]).replace("'", '"') + str(ascend(2)).replace("'", '"'))
    trace = nbkit.load(path)
    assert device_times(trace) == [55.25] * 3
    kernels = trace.ops[trace.ops["level"] == "kernel"]
    assert kernels["device"].tolist() == ["npu"] * 3 and kernels["stream"].tolist() == [2] * 3
    assert trace.meta["skipped"] == {"events of the category ''": 3}


def test_ops_with_the_id_of_the_op_around_them_are_of_one_rank(tmp_path):
    events = rank(0, 100, 0)
    events += [
        slice_("cpu_op", "aten::empty", 100.0 * at + 1, 2.0, pid=100, tid=100, External_id=at + 1) for at in range(4)
    ]
    events.sort(key=lambda event: (event["ts"], -event["dur"]))
    trace = nbkit.load(written(tmp_path / "t.json", events))
    assert trace.meta["notes"] == [] and trace.ops["thread"].nunique() == 1
