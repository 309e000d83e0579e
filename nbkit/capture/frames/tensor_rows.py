"""Builds the tensors frame from the raw record: resolves identities, writes metadata as text."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from nbkit.capture.frames.string_columns import text_column
from nbkit.capture.frames.tensor_columns import TensorColumns
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.statistics import NOTHING, Values
from nbkit.schema import TENSORS, nullable

# No record has it: a storage is -1 or more, and has fewer geometries than this.
NO_MEMORY = np.iinfo(np.int64).min
STATISTICS = ("mean", "std", "min", "max", "norm", "nan_count", "inf_count")


class TensorSpans(NamedTuple):
    """Holds where the tensors of one thread's ops stand: one entry per op, but for `records`."""

    rows: np.ndarray
    first: np.ndarray  # index into records: inputs, then outputs
    inputs: np.ndarray
    outputs: np.ndarray
    records: np.ndarray  # number of the tensor record of every tensor that the thread met


Spans = Mapping[int, TensorSpans]  # by thread number


def sizes_text(sizes: Any) -> str:
    """Returns a JSON list of sizes; an unknown or symbolic one is null."""
    return "[" + ", ".join(str(int(size)) if isinstance(size, int) else "null" for size in sizes) + "]"


def dtype_text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def tensor_ids(tensors: TensorColumns) -> np.ndarray:
    """Returns the tensor number of each record, dense from 0.

    A tensor that came out of an op is new. One that was met otherwise (autograd wraps saved tensors anew, `.data`,
    `from_numpy`) is the last one with the same memory and geometry, if there is one.
    """
    order = tensors.by_memory
    is_first = np.diff(tensors.in_order, prepend=NO_MEMORY) != 0
    is_new = is_first | tensors.fresh[order] | (tensors.storage[order] < 0)
    # The last new record up to each one, among those of the same memory and geometry, which stand in order of time.
    latest = order[np.maximum.accumulate(np.where(is_new, np.arange(tensors.count), 0))]
    number = np.empty(tensors.count, dtype=np.int64)
    number[order] = is_new
    number = np.cumsum(number) - 1
    ids = np.empty(tensors.count, dtype=np.int64)
    ids[order] = number[latest]
    return ids


def flat_positions(first: np.ndarray, inputs: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns for every tensor of every op: row of the op, index in the thread's list, whether an output, position."""
    counts = inputs + outputs
    row = np.repeat(np.arange(len(first)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    is_output = within >= inputs[row]
    return row, first[row] + within, is_output, within - np.where(is_output, inputs[row], 0)


def tensors_frame(
    recording: Recording,
    tensors: TensorColumns,
    op_ids: np.ndarray,
    spans: Spans,
    made_node: np.ndarray,
    only_first: np.ndarray,
    names: Mapping[str, Mapping[int, str]],
    statistics: Mapping[tuple[int, int], Values] | None,
) -> pd.DataFrame:
    """Returns the tensors frame of the aten ops.

    `made_node` and `only_first` say of each row whether its op made an autograd node and has one differentiable output,
    `names` are texts of records by column.
    """
    parts = []
    for number, (rows, first, inputs, outputs, records) in spans.items():
        local, index, is_output, position = flat_positions(first, inputs, outputs)
        parts.append((rows[local], records[index], is_output, position, np.full(len(index), number), index))
    row, record, is_output, position, thread_number, index = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    usable = order[record[order] >= 0]
    row, record, is_output, position = row[usable], record[usable], is_output[usable], position[usable]
    # The gradient flags need all rows, also those that a filter leaves out.
    counts = made_node[row] & ~(only_first[row] & is_output & (position > 0))
    grads = _requires_grad_column(tensors, recording.registry.survivors(), row, record, is_output, counts)
    known = op_ids[row] >= 0
    columns = record_columns(tensors, record[known], names)
    columns |= {
        "op_id": op_ids[row[known]],
        "role": text_column(is_output[known].astype(np.int64), ["input", "output"]),
        "position": position[known],
        "requires_grad": grads[known],
    }
    if statistics is not None:
        keys = zip(thread_number[usable][known].tolist(), index[usable][known].tolist(), strict=True)
        values = list(zip(*(statistics.get(key, NOTHING) for key in keys), strict=True)) or [()] * len(STATISTICS)
        columns |= {name: list(column) for name, column in zip(STATISTICS, values, strict=True)}
    return TENSORS.frame(columns)


def record_columns(
    tensors: TensorColumns, record: np.ndarray, names: Mapping[str, Mapping[int, str]]
) -> dict[str, Any]:
    """Returns the columns that follow from the tensor alone."""
    geometries = tensors.geometries
    geometry = tensors.geometry[record]
    numel = np.array([element_count(shape) for shape, *_ in geometries], dtype=np.int64)
    itemsize = np.array([dtype.itemsize for *_, dtype in geometries], dtype=np.int64)
    nbytes = tensors.nbytes[record]
    return {
        "tensor_id": tensor_ids(tensors)[record],
        "storage_id": nullable(tensors.storage[record]),
        **{column: _named(tensors, record, texts) for column, texts in names.items()},
        "dtype": text_column(geometry, [dtype_text(dtype) for *_, dtype in geometries]),
        "shape": text_column(geometry, [sizes_text(shape) for shape, *_ in geometries]),
        "stride": text_column(
            geometry, [None if stride is None else sizes_text(stride) for _, stride, *_ in geometries]
        ),
        "device": text_column(tensors.device[record], [str(device) for device in tensors.devices]),
        "numel": numel[geometry],
        "size_bytes": nullable(np.where(nbytes == -1, (numel * itemsize)[geometry], nbytes)),
    }


def _named(tensors: TensorColumns, record: np.ndarray, names: Mapping[int, str]) -> Any:
    code = np.full(tensors.count, -1, dtype=np.int64)
    code[list(names)] = np.arange(len(names))
    return text_column(code[record], list(names.values()))


def element_count(shape: Any) -> int:
    count = 1
    for size in shape:
        count *= int(size) if isinstance(size, int) else 0
    return count


def _requires_grad_column(
    tensors: TensorColumns,
    alive: Mapping[int, bool],
    row: np.ndarray,
    record: np.ndarray,
    is_output: np.ndarray,
    counts: np.ndarray,
) -> np.ndarray:
    """Returns whether each tensor required a gradient at that op; rows are ordered by op.

    A tensor leaves the dispatcher before autograd marks it, so what was read of an output is too early: it requires a
    gradient if its op made an autograd node (`counts`, false also for an output that is not differentiable) and one of
    the inputs required one. `alive` are the answers of those that survived the step: they settle what was not worked
    out, such as the result of a custom Function, but not since when.
    """
    kinds = [dtype.is_floating_point or dtype.is_complex for *_, dtype in tensors.geometries]
    may_need = np.array(kinds, dtype=bool)[tensors.geometry]
    may_need[[number for number, answer in alive.items() if not answer]] = False
    needs = tensors.requires_grad.copy()
    positions = np.flatnonzero(counts)
    since = _since(needs, may_need, positions, row, record, is_output)
    missed = [number for number, answer in alive.items() if answer and since[number] == len(row)]
    if missed:
        needs[missed] = True
        since = _since(needs, may_need, positions, row, record, is_output)
    column: np.ndarray = np.arange(len(row)) >= np.array(since, dtype=np.int64)[record]
    return column


def _since(
    needs: np.ndarray,
    may_need: np.ndarray,
    positions: np.ndarray,
    row: np.ndarray,
    record: np.ndarray,
    is_output: np.ndarray,
) -> list[int]:
    """Returns the position in the column from which on each record requires a gradient; its length for never."""
    never = len(row)
    since: list[int] = np.where(needs, 0, never).tolist()
    allowed = may_need.tolist()
    current, is_marked = -1, False
    for position, op, number, output in zip(
        positions.tolist(), *(values[positions].tolist() for values in (row, record, is_output)), strict=True
    ):
        if op != current:
            current, is_marked = op, False
        if not output:
            is_marked = is_marked or since[number] < never
        elif is_marked and since[number] == never and allowed[number]:
            since[number] = position
    return since
