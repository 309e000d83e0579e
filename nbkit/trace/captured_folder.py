"""Saves captured calls as opcapture's folders hold calls, so that opreplay runs them again, and reads them back.

A record has what opreplay needs, and `compared`: what opdiff found out about its results.
"""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbkit.errors import TraceError
from nbkit.numerics.precision import Array
from nbkit.trace.calls.layout import HEAD, IN_TRACE, Record, encode
from nbkit.trace.calls.reading import PLACE_COLUMNS, CallFolder
from nbkit.trace.calls.writing import CallWriter
from nbkit.trace.captured_values import MOST_GAPS, CapturedCall, CapturedResult, CapturedTensor, contiguous

NO_LIMIT = 2**63
# What results are widened to: nbkit/capture/diff/pair.py.
WIDE = ("<f8", "<c16", "<i8", "<u8")


def write_captured(folder: Path, calls: Mapping[int, CapturedCall], ops: pd.DataFrame, meta: Mapping[str, Any]) -> None:
    """Writes calls into an existing folder; `ops` and `meta` are those of their trace. Raises OSError, TraceError."""
    head = {name: meta[name] for name in ("created", "versions", "machine") if name in meta}
    writer = CallWriter(folder / IN_TRACE, head, NO_LIMIT)
    numbers = ops.groupby("op", sort=False).cumcount().to_numpy() if len(ops) else np.zeros(0, np.int64)
    for op_id, call in calls.items():
        writer.add(_record(call, int(numbers[op_id]) if op_id < len(numbers) else 0, writer))
    writer.finish()
    rows = ops.reindex(columns=PLACE_COLUMNS[1:], index=list(calls)).astype(object)
    places = rows.where(rows.notna(), None)
    writer.close(encode({"op_id": list(calls), **{name: places[name].tolist() for name in PLACE_COLUMNS[1:]}}))


def read_captured(folder: Path) -> dict[int, CapturedCall]:
    """Returns the calls in a folder, by op_id; none if it has none. Raises TraceError, and ValueError or what
    else a damaged record raises.
    """
    if not (folder / IN_TRACE / HEAD).is_file():
        return {}
    opened = CallFolder(folder / IN_TRACE)
    calls = dict[int, CapturedCall]()
    try:
        for _, record in opened:
            if isinstance(record, TraceError):
                raise record
            call = _call(record, opened)
            calls[call.op_id] = call
    except TraceError as error:
        raise ValueError(f"in {IN_TRACE}, {str(error).partition(';')[0]}") from error
    return calls


def _record(call: CapturedCall, number: int, writer: CallWriter) -> Record:
    storages, tensors = list[Record](), list[Record]()
    for place, tensor in enumerate(call.tensors):
        data, stride = _laid_out(tensor)
        storage: Record = {"bytes": len(data)}
        if len(data):
            storage["before"] = writer.put(data)
        if tensor.device != "cpu":
            storage["device"] = tensor.device
        storages.append(storage)
        entry: Record = {"dtype": tensor.dtype, "shape": list(tensor.shape), "storage": place}
        tensors.append(entry if stride == contiguous(tensor.shape) else entry | {"stride": list(stride)})
    compared = {
        "op_id": call.op_id,
        "device": call.device,
        "setup": list(call.setup),
        "note": call.note,
        "strides": [list(tensor.stride) for tensor in call.tensors],
        "results": [_result(result, writer) for result in call.results],
    }
    record = {"op": call.op, "number": number, "storages": storages, "tensors": tensors, "args": call.args}
    return record | {"kwargs": dict(call.kwargs), "compared": compared}


def _result(result: CapturedResult, writer: CallWriter) -> Record:
    return {**vars(result), "actual": _array(result.actual, writer), "expected": _array(result.expected, writer)}


def _array(values: Array, writer: CallWriter) -> list[str]:
    """Returns the dtype of an array, as numpy writes it, and the name of its bytes."""
    return [values.dtype.str, writer.put(np.frombuffer(values.tobytes(), np.uint8))]


def _laid_out(tensor: CapturedTensor) -> tuple[Array, tuple[int, ...]]:
    """Returns a tensor's memory as it was in the step, without large gaps, and its strides there."""
    count, data = prod(tensor.shape), np.frombuffer(tensor.data, np.uint8)
    span = _span(tensor.shape, tensor.stride)
    if not count or span > MOST_GAPS * count:
        return data, contiguous(tensor.shape)
    item = len(data) // count
    memory = np.zeros(span, f"V{item}")
    _strided(memory, tensor.shape, tensor.stride)[...] = data.view(memory.dtype).reshape(tensor.shape)
    return memory.view(np.uint8), tensor.stride


def _call(record: Record, folder: CallFolder) -> CapturedCall:
    compared = record["compared"]
    tensors = [
        CapturedTensor(
            entry["dtype"],
            tuple(entry["shape"]),
            tuple(stride),
            record["storages"][entry["storage"]].get("device", "cpu"),
            _values(record, entry, folder),
        )
        for entry, stride in zip(record["tensors"], compared["strides"], strict=True)
    ]
    return CapturedCall(
        compared["op_id"], record["op"], compared["device"], record["args"], record["kwargs"], tuple(tensors),
        tuple(_results(compared["results"], folder)), tuple(compared["setup"]), compared["note"],
    )  # fmt: skip


def _values(record: Record, entry: Record, folder: CallFolder) -> bytes:
    """Returns the values of a tensor one after the other, from the memory that it lies in."""
    storage, shape = record["storages"][entry["storage"]], tuple(entry["shape"])
    if not prod(shape):
        return b""
    stride, memory = tuple(entry.get("stride", contiguous(shape))), folder.content(storage["before"])
    span = _span(shape, stride)
    if min(stride, default=0) < 0 or not span <= len(memory) or len(memory) % span:
        raise ValueError(f"a tensor of {span} elements in {len(memory)} bytes")
    return _strided(memory.view(f"V{len(memory) // span}"), shape, stride).tobytes()


def _results(outlines: list[Record], folder: CallFolder) -> Iterator[CapturedResult]:
    for outline in outlines:
        sides = {side: read_array(outline[side], folder.content) for side in ("actual", "expected")}
        shapes = {name: tuple(outline[name]) for name in ("shape", "expected_shape")}
        yield CapturedResult(**{**outline, **shapes, **sides})


def read_array(outline: Any, content: Callable[[object], Array]) -> Array:
    """Returns an array of a result. Raises TraceError, ValueError, TypeError on what is none."""
    dtype, name = outline
    if dtype not in WIDE:
        raise ValueError(f"{dtype!r} is no dtype of a result")
    return content(name).view(dtype)


def _span(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def _strided(memory: Array, shape: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    item = memory.itemsize
    made: Array = np.lib.stride_tricks.as_strided(memory, shape, [step * item for step in stride])
    return made
