"""What devices did, on a small hand-made timeline."""

import pandas as pd

from nbkit.analysis.time.device import device_use, launch_delays, synchronising_calls
from tests.support.fakes import make_ops


def row(start: float, total: float, parent: int | None, level: str, op: str, **more: object) -> dict[str, object]:
    return {"start_us": start, "total_time_us": total, "parent_id": parent, "level": level, "op": op, **more}


def gpu_ops() -> pd.DataFrame:
    """A step of 100 us: two kernels on stream 7 (the second waits for the first), one on stream 9, and an item()."""
    on = {"level": "kernel", "device": "cuda:0"}
    fc = {"model": "Net", "module": "fc"}
    return make_ops(
        row(0, 100, None, "range", "step"),
        row(10, 10, 0, "aten", "aten.linear.default", **fc),
        row(11, 8, 1, "aten", "aten.mm.default", **fc),
        row(12, 2, 2, "runtime", "cudaLaunchKernel", **fc),
        row(15, 2, 2, "runtime", "cudaLaunchKernel", **fc),
        {**row(20, 30, 3, "", "gemm", **fc), **on, "stream": 7},
        row(22, 2, 0, "runtime", "cudaLaunchKernel"),
        {**row(40, 20, 6, "", "copy"), **on, "stream": 9},
        {**row(50, 10, 4, "", "add", **fc), **on, "stream": 7},
        row(60, 35, 0, "aten", "aten.item.default", source="train.py:3"),
        row(61, 30, 9, "aten", "aten._local_scalar_dense.default"),
        row(62, 28, 10, "runtime", "cudaStreamSynchronize"),
        row(96, 3, 0, "runtime", "cudaDeviceSynchronize"),
    )


def test_busy_time_is_the_union_of_the_kernels() -> None:
    use = device_use(gpu_ops())
    assert use["stream"].fillna(-1).tolist() == [-1, 7, 9]
    assert use["kernels"].tolist() == [3, 2, 1]
    assert use["busy_us"].tolist() == [40.0, 40.0, 20.0]
    assert use["idle_us"].tolist() == [60.0, 60.0, 80.0]
    assert use["busy_fraction"].tolist() == [0.4, 0.4, 0.2]


def test_delay_runs_from_the_launch_to_the_kernel() -> None:
    delays = launch_delays(gpu_ops())
    assert delays["kernel"].tolist() == ["gemm", "add", "copy"]
    assert delays["launch_op_id"].tolist() == [3, 4, 6]
    assert delays["op"].fillna("-").tolist() == ["aten.mm.default", "aten.mm.default", "-"]
    assert delays["op_id_above"].fillna(-1).tolist() == [2, 2, -1]
    assert delays["delay_us"].tolist() == [8.0, 35.0, 18.0]
    assert delays["queue_depth"].tolist() == [0, 1, 0]


def test_synchronising_calls_name_the_op_that_the_user_called() -> None:
    calls = synchronising_calls(gpu_ops())
    assert calls["call"].tolist() == ["cudaStreamSynchronize", "cudaDeviceSynchronize"]
    assert calls["op"].fillna("-").tolist() == ["aten.item.default", "-"]
    assert calls["op_id_above"].fillna(-1).tolist() == [9, -1]
    assert calls["source"].fillna("-").tolist() == ["train.py:3", "-"]
    assert calls["total_time_us"].tolist() == [28.0, 3.0]


def test_a_trace_of_the_cpu_has_no_device() -> None:
    for ops in (make_ops(), make_ops({}, {"parent_id": 0})):
        assert [len(table(ops)) for table in (device_use, launch_delays, synchronising_calls)] == [0] * 3


def test_a_kernel_of_unknown_launch_counts_as_busy_only() -> None:
    ops = make_ops({}, {"level": "kernel", "device": "cuda:1", "start_us": 0.5, "total_time_us": 0.5})
    assert device_use(ops)["busy_fraction"].tolist() == [0.5]
    assert len(launch_delays(ops)) == 0
