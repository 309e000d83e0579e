"""The tensors frame from the raw record: identities resolved, metadata written as text."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from nbkit.capture.recording import Recording
from nbkit.capture.statistics import NOTHING, Values
from nbkit.capture.strings import nullable, text_column
from nbkit.capture.tensor_registry import TensorRecord
from nbkit.schema import TENSORS

STATISTICS = ("mean", "std", "min", "max", "norm", "nan_count", "inf_count")


class Texts:
    """Numbers distinct values and writes each as text once."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}
        self.texts: list[str | None] = []

    def code(self, value: Any, write: Any) -> int:
        """Number of `write(value)`; -1 for None."""
        if value is None:
            return -1
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.texts)
            self.texts.append(write(value))
        return code


def sizes_text(sizes: Any) -> str:
    """JSON list of sizes; an unknown or symbolic one is null."""
    return "[" + ", ".join(str(int(size)) if isinstance(size, int) else "null" for size in sizes) + "]"


def dtype_text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def tensor_ids(records: list[TensorRecord]) -> np.ndarray:
    """Tensor number of each record, dense from 0.

    A tensor that came out of an op is new. One that was met otherwise (autograd wraps saved tensors anew, `.data`,
    `from_numpy`) is the last one with the same memory and geometry, if there is one.
    """
    latest: dict[Any, int] = {}
    ids = np.empty(len(records), dtype=np.int64)
    count = 0
    for number, (fresh, storage, shape, stride, offset, dtype, *_) in enumerate(records):
        key = (storage, shape, stride, offset, dtype)
        found = None if fresh or storage < 0 else latest.get(key)
        if found is None:
            found, count = count, count + 1
        latest[key] = ids[number] = found
    return ids


def flat_positions(first: np.ndarray, inputs: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """For every tensor of every op: row of the op, index in the thread's list, whether an output, position."""
    counts = inputs + outputs
    row = np.repeat(np.arange(len(first)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    is_output = within >= inputs[row]
    return row, first[row] + within, is_output, within - np.where(is_output, inputs[row], 0)


def requires_grad_column(
    recording: Recording, rows: np.ndarray, records: np.ndarray, is_output: np.ndarray, made_node: np.ndarray
) -> np.ndarray:
    """Whether each tensor required a gradient at that op.

    A tensor leaves the dispatcher before autograd marks it, so what was read of an output is too early: it requires a
    gradient if its op made an autograd node and one of the inputs required one. Survivors are asked themselves.
    """
    seen = recording.registry.records
    needs = [record.requires_grad for record in seen]
    for anchor, number in recording.registry.known.values():
        tensor = anchor()
        if isinstance(tensor, torch.Tensor):
            needs[number] = tensor.requires_grad
    differentiable = [record.dtype.is_floating_point or record.dtype.is_complex for record in seen]
    column = np.zeros(len(rows), dtype=bool)
    current, marks = -1, False
    for index, (row, number, output) in enumerate(
        zip(rows.tolist(), records.tolist(), is_output.tolist(), strict=True)
    ):
        if row != current:
            current, marks = row, False
        if output:
            if marks and differentiable[number]:
                needs[number] = True
        elif needs[number] and made_node[row]:
            marks = True
        column[index] = needs[number]
    return column


def tensors_frame(
    recording: Recording,
    op_ids: np.ndarray,
    spans: Mapping[int, tuple[np.ndarray, ...]],
    made_node: np.ndarray,
    names: Mapping[int, str],
    statistics: Mapping[tuple[int, int], Values] | None,
) -> pd.DataFrame:
    """Rows for the aten ops; `spans` maps a thread number to (row, first, inputs, outputs) of its ops."""
    parts = []
    for thread in recording.threads.values():
        rows, first, inputs, outputs = spans[thread.number]
        local, index, is_output, position = flat_positions(first, inputs, outputs)
        held = np.array(thread.tensors, dtype=np.int64)[index] if len(index) else np.empty(0, np.int64)
        parts.append((rows[local], held, is_output, position, np.full(len(index), thread.number), index))
    row, record, is_output, position, thread_number, index = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    known = order[(record[order] >= 0) & (op_ids[row[order]] >= 0)]
    # The gradient flags need all rows, also those that a filter leaves out.
    grads = np.zeros(len(row), dtype=bool)
    usable = order[record[order] >= 0]
    grads[usable] = requires_grad_column(recording, row[usable], record[usable], is_output[usable], made_node)
    row, record, is_output, position = row[known], record[known], is_output[known], position[known]
    columns = record_columns(recording.registry.records, record, names)
    columns |= {
        "op_id": op_ids[row],
        "role": text_column(is_output.astype(np.int64), ["input", "output"]),
        "position": position,
        "requires_grad": grads[known],
    }
    if statistics is not None:
        keys = zip(thread_number[known].tolist(), index[known].tolist(), strict=True)
        values = list(zip(*(statistics.get(key, NOTHING) for key in keys), strict=True)) or [()] * len(STATISTICS)
        columns |= {name: list(column) for name, column in zip(STATISTICS, values, strict=True)}
    return TENSORS.frame(columns)


def record_columns(records: list[TensorRecord], record: np.ndarray, names: Mapping[int, str]) -> dict[str, Any]:
    """Columns that follow from the tensor alone."""
    shapes, strides, dtypes, devices = Texts(), Texts(), Texts(), Texts()
    codes = np.array(
        [
            (
                shapes.code(r.shape, sizes_text),
                strides.code(r.stride, sizes_text),
                dtypes.code(r.dtype, dtype_text),
                devices.code(r.device, str),
                r.storage,
                r.nbytes,
                r.dtype.itemsize,
            )
            for r in records
        ],
        dtype=np.int64,
    ).reshape(len(records), 7)
    numel = np.array([element_count(shape) for shape in shapes.codes], dtype=np.int64)
    shape_code = codes[record, 0]
    numels = numel[shape_code] if len(record) else np.empty(0, np.int64)
    nbytes = codes[record, 5]
    name_code = np.full(len(records), -1, dtype=np.int64)
    name_code[list(names)] = np.arange(len(names))
    return {
        "tensor_id": tensor_ids(records)[record],
        "storage_id": nullable(codes[record, 4]),
        "name": text_column(name_code[record], list(names.values())),
        "dtype": text_column(codes[record, 2], dtypes.texts),
        "shape": text_column(shape_code, shapes.texts),
        "stride": text_column(codes[record, 1], strides.texts),
        "device": text_column(codes[record, 3], devices.texts),
        "numel": numels,
        "size_bytes": nullable(np.where(nbytes == -1, numels * codes[record, 6], nbytes)),
    }


def element_count(shape: Any) -> int:
    count = 1
    for size in shape:
        count *= int(size) if isinstance(size, int) else 0
    return count
