"""Makes Chrome traces with all that a file can hold, at random: ops, kernels, arrows, allocations, Python frames."""

import json
import random
from pathlib import Path
from typing import Any

from tests.readers.exports import slice_


def trace_of(seed: int, steps: int, path: Path, **around: Any) -> Path:
    """Writes `steps` steps of two host threads and two streams, whose work lags by some steps; returns `path`."""
    numbers = random.Random(seed)
    events: list[dict[str, Any]] = []
    for step in range(steps):
        begin = 1000.0 + 500.0 * step
        events += _forward(numbers, step, begin) + _backward(numbers, step, begin + 200.0)
        events.append(slice_("cpu_op", "Optimizer.step#AdamW.step", begin + 400.0, 50.125, External_id=100 * step + 90))
    events.append(slice_("python_function", "/data/me/train.py(3): main", 900.0, 500.0 * steps))
    events.append(slice_("gpu_user_annotation", "copied", 1000.0, 5.0, tid=20))
    text = ",\n".join(json.dumps(event) for event in numbers.sample(events, len(events)))
    head = json.dumps({"schemaVersion": 1, **around})[:-1]
    path.write_text(f'{head}, "traceEvents": [\n{text}\n]}}')
    return path


def _forward(numbers: random.Random, step: int, begin: float) -> list[dict[str, Any]]:
    events = [slice_("python_function", "nn.Module: Linear_0", begin, 150.5)]
    events.append(slice_("python_function", f"/data/me/model.py({step % 3}): forward", begin + 1.0, 149.0))
    for at in range(4):
        key, start = 100 * step + at + 1, begin + 5.0 + 30 * at + numbers.random()
        shapes = [[2, 3 + at], [3 + at, 4]]
        events.append(slice_("cpu_op", "aten::mm", start, 20.0, External_id=key, Input_Dims=shapes))
        events.append(slice_("cuda_runtime", "cudaLaunchKernel", start + 2, 3.5, correlation=key, External_id=key))
        late = start + 1 + 700 * numbers.random()
        work = {"correlation": key, "External_id": key, "device": 0, "stream": 20 + at % 2, "tid": 20 + at % 2}
        events.append(slice_("kernel", f"gemm_{at}", late, 10 + 100 * numbers.random(), **work))
        events.append(_arrow("s", key, start, 7))
        events.append(_allocation(numbers, start + 1))
    return events


def _backward(numbers: random.Random, step: int, begin: float) -> list[dict[str, Any]]:
    node = "autograd::engine::evaluate_function: "
    events = []
    for at in range(4):
        start, key = begin + 40 * at, 100 * step + 50 + at
        events.append(slice_("cpu_op", f"{node}MmBackward0", start, 30.0, tid=8, External_id=key))
        events.append(slice_("cpu_op", "aten::mm", start + 2, 20.25, tid=8, External_id=key + 20))
        events.append(_arrow("f", 100 * step + at + 1, start + 2, 8))
        gathered = f"{node}torch::autograd::AccumulateGrad"
        events.append(slice_("cpu_op", gathered, start + 31, 5.0, tid=8, External_id=key + 30))
    args = {"Collective name": "allreduce", "In msg nelems": 100, "dtype": "Float", "Process Group Name": "0"}
    call = slice_("cpu_op", "nccl:all_reduce", begin + 170, 6.0, tid=8, External_id=100 * step + 89)
    return [*events, {**call, "args": {**call["args"], **args, "Group size": 2}}]


def _arrow(phase: str, key: int, time: float, thread: int) -> dict[str, Any]:
    return {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": key, "pid": 7, "tid": thread, "ts": time, "bp": "e"}


def _allocation(numbers: random.Random, time: float) -> dict[str, Any]:
    size = numbers.choice([512, -512, 1024])
    args = {"Addr": numbers.randrange(1, 9), "Bytes": size, "Device Type": numbers.choice([0, 1]), "Device Id": 0}
    return {"ph": "i", "name": "[memory]", "pid": 7, "tid": 7, "ts": time, "args": {**args, "Total Allocated": 4096}}
