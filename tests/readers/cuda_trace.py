"""Makes a Chrome trace in the form that torch 2.x writes on CUDA, by hand: one product, one copy, one all-reduce."""

from typing import Any

from tests.readers.exports import slice_

KERNEL = {"queued": 0, "context": 1, "grid": [8, 12, 1], "block": [128, 1, 1], "warps per SM": 2.9}
COLLECTIVE = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2}
GROUP = {"Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}
AROUND: dict[str, Any] = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42505273344, "warpSize": 32}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    "traceName": "rank0.json",
}


def device(category: str, name: str, start: float, duration: float, **fields: Any) -> dict[str, Any]:
    """Makes work on stream `stream` of device 0."""
    stream = fields["stream"]
    event = slice_(category, name, start, duration, pid=0, tid=stream)
    return {**event, "args": {"device": 0, **KERNEL, **{key.replace("_", " "): v for key, v in fields.items()}}}


def runtime(name: str, start: float, duration: float, external: int | None, correlation: int) -> dict[str, Any]:
    """Makes a call of the CUDA runtime."""
    event = slice_("cuda_runtime", name, start, duration, cbid=211, correlation=correlation)
    event["args"] |= {} if external is None else {"External id": external}
    return event


def events() -> list[dict[str, Any]]:
    """Returns all events, in the order in which Kineto writes them: host, device, arrows, spans."""
    comms = slice_("cpu_op", "record_param_comms", 62.0, 18.0, External_id=5)
    comms["args"] |= {**COLLECTIVE, **GROUP, "dtype": "BFloat16"}
    nccl = device("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 90.0, 40.0, stream=16, correlation=103)
    nccl["args"] |= {**COLLECTIVE, **GROUP, "dtype": "BFloat16", "External id": 5}
    return [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0.0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0.0, "args": {"labels": "GPU 0"}},
        slice_("user_annotation", "ProfilerStep#3", 0.0, 90.0, External_id=1),
        slice_("cpu_op", "aten::linear", 10.0, 30.0, External_id=2, Input_Dims=[[4, 8], [16, 8], []]),
        slice_("cpu_op", "aten::addmm", 12.0, 20.0, External_id=3, Input_Dims=[[16], [4, 8], [8, 16], [], []]),
        slice_("cpu_op", "aten::copy_", 45.0, 10.0, External_id=4),
        slice_("cpu_op", "c10d::allreduce_", 60.0, 22.0, External_id=6),
        comms,
        device("kernel", "ampere_sgemm_64x32_sliced1x4_nn", 50.5, 8.25, stream=7, correlation=101, External_id=3),
        device("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 59.0, 2.0, stream=7, correlation=102, bytes=4096),
        nccl,
        device("gpu_user_annotation", "ProfilerStep#3", 50.499, 79.502, stream=7),
        device("cuda_sync", "Stream Sync", 84.0, 46.0, stream=7, correlation=104),
        runtime("cudaLaunchKernel", 15.0, 6.0, 3, 101),
        runtime("cudaMemcpyAsync", 47.0, 5.0, 4, 102),
        runtime("cudaLaunchKernelExC", 65.0, 5.0, 5, 103),
        runtime("cudaStreamSynchronize", 84.0, 5.0, None, 104),
        {"ph": "s", "id": 101, "pid": 7, "tid": 7, "ts": 15.0, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": 101, "pid": 0, "tid": 7, "ts": 50.5, "cat": "ac2g", "name": "ac2g", "bp": "e"},
        slice_("Trace", "PyTorch Profiler (0)", -5.0, 140.0, pid="Spans", tid="PyTorch Profiler", Op_count=0),
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 140.0},
    ]
