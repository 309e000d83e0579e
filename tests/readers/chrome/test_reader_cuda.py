"""Tests a CUDA trace as torch 2.x writes it: what launched each kernel, on which stream, and how long it ran."""

import pandas as pd
import pytest

import nbkit
from tests.readers.cuda_trace import AROUND, events
from tests.readers.exports import slice_, written


@pytest.fixture
def trace(tmp_path):
    return nbkit.load(written(tmp_path / "rank0.json", events(), **AROUND))


def by_op(trace, column):
    return dict(zip(trace.ops["op"], trace.ops[column], strict=True))


def test_device_work_hangs_under_the_call_that_launched_it(trace):
    ops, names = trace.ops, trace.ops["op"].tolist()
    work = ops[ops["level"] == "kernel"]
    assert [names[parent] for parent in work["parent_id"]] == [
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "cudaLaunchKernelExC",
    ]
    launches = ops[ops["level"] == "runtime"]
    assert [names[parent] for parent in launches["parent_id"]] == [
        "aten.addmm",
        "aten.copy_",
        "record_param_comms",
        "ProfilerStep#3",
    ]


def test_device_work_has_its_device_and_stream_and_the_thread_that_launched_it(trace):
    work = trace.ops[trace.ops["level"] == "kernel"]
    assert work["device"].tolist() == ["cuda:0"] * 3
    assert work["stream"].tolist() == [7, 7, 16]
    assert work["thread"].tolist() == [0, 0, 0]
    assert trace.meta["devices"] == ["cpu", "cuda:0"]


def test_device_times_are_those_of_the_kernels(trace):
    total, own = by_op(trace, "total_device_time_us"), by_op(trace, "self_device_time_us")
    assert (total["aten.linear"], own["aten.linear"]) == (8.25, 0.0)
    assert (total["aten.addmm"], own["aten.addmm"]) == (8.25, 8.25)
    assert total["ProfilerStep#3"] == 8.25 + 2.0 + 40.0
    assert total["ampere_sgemm_64x32_sliced1x4_nn"] == 8.25


def test_host_times_leave_device_work_out(trace):
    own = by_op(trace, "self_time_us")
    assert (own["aten.linear"], own["aten.addmm"], own["cudaLaunchKernel"]) == (10.0, 14.0, 6.0)
    assert by_op(trace, "start_us")["ampere_sgemm_64x32_sliced1x4_nn"] == 50.5


def test_copies_and_collectives_have_bytes_and_group(trace):
    size, group = by_op(trace, "size_bytes"), by_op(trace, "group")
    assert size["Memcpy HtoD (Pageable -> Device)"] == 4096
    assert size["record_param_comms"] == size["ncclDevKernel_AllReduce_Sum_bf16_RING_LL"] == 2000
    assert group["record_param_comms"] == group["ncclDevKernel_AllReduce_Sum_bf16_RING_LL"] == "default_pg (2 ranks)"
    assert pd.isna(size["aten.addmm"]) and pd.isna(group["aten.addmm"])


def test_what_has_no_place_is_counted(trace):
    assert trace.meta["skipped"] == {
        "device-side copies of named blocks": 1,
        "synchronizations as the device saw them (cuda_sync)": 1,
    }


def test_meta_says_what_the_file_says(trace):
    assert (trace.meta["name"], trace.meta["wall_us"]) == ("rank0.json", 140.0)
    assert trace.meta["created"] == "2023-11-14T22:13:19.999995+00:00"
    assert trace.meta["chrome_trace"]["distributedInfo"] == {"backend": "nccl", "rank": 0, "world_size": 2}
    assert trace.meta["chrome_trace"]["deviceProperties"][0]["name"] == "NVIDIA A100-SXM4-40GB"


def test_a_kernel_without_its_runtime_call_hangs_under_its_op(tmp_path):
    without = [event for event in events() if event.get("cat") != "cuda_runtime"]
    ops = nbkit.load(written(tmp_path / "t.json", without)).ops
    work = ops[ops["op"].str.startswith("ampere")]
    assert ops["op"][work["parent_id"].item()] == "aten.addmm"


def test_stream_zero_of_device_zero_is_not_taken_for_the_main_thread(tmp_path):
    host = slice_("cpu_op", "aten::mm", 0.0, 5.0, pid=3, tid=4), slice_("cpu_op", "aten::mul", 6.0, 5.0, pid=3, tid=3)
    work = slice_("kernel", "gemm", 1.0, 2.0, pid=0, tid=0, device=0, stream=0)
    ops = nbkit.load(written(tmp_path / "t.json", [work, *host])).ops
    assert dict(zip(ops["op"], ops["thread"], strict=True)) == {"aten.mm": 1, "gemm": 0, "aten.mul": 0}


@pytest.mark.parametrize(
    ("category", "device"),
    [("xpu_runtime", "xpu:0"), ("hip_runtime", "cuda:0"), ("privateuse1_runtime", "privateuseone:0")],
)
def test_the_kind_of_device_is_that_of_its_runtime(tmp_path, category, device):
    call = slice_(category, "launch", 0.0, 5.0, correlation=1)
    work = slice_("kernel", "gemm", 1.0, 2.0, pid=0, tid=0, device=0, stream=0, correlation=1)
    ops = nbkit.load(written(tmp_path / "t.json", [work, call])).ops
    assert ops["device"].tolist() == [device, device]
    assert ops["parent_id"].tolist()[1] == 0
