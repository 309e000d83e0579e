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
from nbkit.trace.calls.layout import HEAD, IN_TRACE, PLACE_COLUMNS, Record
from nbkit.trace.calls.reading import CallFolder
from nbkit.trace.calls.writing import CallWriter, places_text
from nbkit.trace.captured_values import CapturedCall, CapturedResult, CapturedTensor, contiguous, extent

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
    writer.close(places_text(ops.reindex(columns=PLACE_COLUMNS[1:], index=list(calls)).assign(op_id=list(calls))))


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


def runnable(call: CapturedCall, put: Callable[[Array], str]) -> Record:
    """Returns the part of a record that runs a call again; `put` names the contents of its storages."""
    storages, tensors = list[Record](), list[Record]()
    for place, tensor in enumerate(call.tensors):
        data = _laid_out(tensor)
        storage: Record = {"bytes": len(data)}
        if len(data):
            storage["before"] = put(data)
        if tensor.device != "cpu":
            storage["device"] = tensor.device
        storages.append(storage)
        entry: Record = {"dtype": tensor.dtype, "shape": list(tensor.shape), "storage": place}
        is_contiguous = tensor.stride == contiguous(tensor.shape)
        tensors.append(entry if is_contiguous else entry | {"stride": list(tensor.stride)})
    return {"storages": storages, "tensors": tensors, "args": call.args, "kwargs": dict(call.kwargs)}


def _laid_out(tensor: CapturedTensor) -> Array:
    """Returns a tensor's memory, with its strides."""
    data, count = np.frombuffer(tensor.data, np.uint8), prod(tensor.shape)
    if not count:
        return data
    memory = np.zeros(extent(tensor.shape, tensor.stride), f"V{len(data) // count}")
    _strided(memory, tensor.shape, tensor.stride)[...] = data.view(memory.dtype).reshape(tensor.shape)
    return memory.view(np.uint8)


def _strided(memory: Array, shape: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    item = memory.itemsize
    made: Array = np.lib.stride_tricks.as_strided(memory, shape, [step * item for step in stride])
    return made


def _record(call: CapturedCall, number: int, writer: CallWriter) -> Record:
    record: Record = {"op": call.op, "number": number, **runnable(call, writer.put)}
    record["compared"] = {
        "op_id": call.op_id,
        "device": call.device,
        "setup": list(call.setup),
        "note": call.note,
        "results": [_result(result, writer) for result in call.results],
    }
    return record


def _result(result: CapturedResult, writer: CallWriter) -> Record:
    return {**vars(result), "actual": _array(result.actual, writer), "expected": _array(result.expected, writer)}


def _array(values: Array, writer: CallWriter) -> list[str]:
    """Returns the dtype of an array, as numpy writes it, and the name of its bytes."""
    return [values.dtype.str, writer.put(np.frombuffer(values.tobytes(), np.uint8))]


def _call(record: Record, folder: CallFolder) -> CapturedCall:
    compared, tensors = record["compared"], [_tensor(entry, record, folder) for entry in record["tensors"]]
    return CapturedCall(
        compared["op_id"], record["op"], compared["device"], record["args"], record["kwargs"], tuple(tensors),
        tuple(_results(compared["results"], folder)), tuple(compared["setup"]), compared["note"],
    )  # fmt: skip


def _tensor(entry: Record, record: Record, folder: CallFolder) -> CapturedTensor:
    """Returns a tensor with its values one after the other, from the memory that it lies in."""
    storage, shape = record["storages"][entry["storage"]], tuple(entry["shape"])
    stride, data = tuple(entry.get("stride", contiguous(shape))), b""
    if prod(shape):
        memory, count = folder.content(storage["before"]), extent(shape, stride)
        if min(stride, default=0) < 0 or not count <= len(memory) or len(memory) % count:
            raise ValueError(f"a tensor of {count} elements in {len(memory)} bytes")
        data = _strided(memory.view(f"V{len(memory) // count}"), shape, stride).tobytes()
    return CapturedTensor(entry["dtype"], shape, stride, storage.get("device", "cpu"), data)


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
