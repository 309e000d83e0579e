"""Builds the table of a model's nodes from what was noted while it ran."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.cost.analyzer.nodes import Node
from nbkit.capture.cost.saved_tensors import Saved
from nbkit.capture.cost.storages import BUFFER, PARAMETER, Storage
from nbkit.schema import NODE_COSTS, TEXT

# The bytes of a saved or made tensor by its memory and its own size.
Sizing = Callable[[Storage, int], int]
SIZINGS: dict[str, Sizing] = {
    "storage": lambda storage, view_bytes: storage.nbytes,
    "view": lambda storage, view_bytes: view_bytes,
}
Memory = dict[int, int]


def node_costs(
    nodes: Sequence[Node],
    saved: Sequence[Saved],
    storages: Sequence[Storage],
    sizing: str,
    flops: tuple[np.ndarray, np.ndarray],
    modules: Sequence[str | None],
) -> pd.DataFrame:
    """Returns the frame NODE_COSTS; `flops` are those of forward and backward pass of each node, NaN where unknown.

    Source: class MetaInfo of the Colossal-AI Analyzer, colossalai/_analyzer/fx/node_util.py.
    """
    sizes = [*_sizes(nodes, saved, storages, SIZINGS[sizing])]
    accumulate, output, temp = (np.array(column, np.int64) for column in zip(*sizes, strict=True))
    return NODE_COSTS.frame(
        {
            "op_kind": pd.array([node.kind for node in nodes], dtype=TEXT),
            "name": pd.array([node.name for node in nodes], dtype=TEXT),
            "module": pd.array(modules, dtype=TEXT),
            "accumulate_bytes": accumulate,
            "incremental_bytes": np.diff(accumulate, prepend=accumulate[0]),
            "output_bytes": output,
            "temp_bytes": temp,
            "param_bytes": np.array([node.param_bytes for node in nodes], np.int64),
            "backward_bytes": np.array([node.input_bytes for node in nodes], np.int64),
            "forward_flops": flops[0],
            "backward_flops": flops[1],
        }
    )


def _sizes(
    nodes: Sequence[Node], saved: Sequence[Saved], storages: Sequence[Storage], size: Sizing
) -> Iterator[tuple[int, int, int]]:
    """Yields accumulate, output and temp of each node."""
    kept = [
        (of.storage.number, size(of.storage, of.view_bytes))
        if not of.is_parameter and of.storage.kind not in (PARAMETER, BUFFER)
        else None
        for of in saved[: nodes[-1].saved]
    ]
    in_the_end: Memory = dict(entry for entry in kept if entry is not None)
    now: Memory = {}
    count = total = 0
    for node in nodes:
        for entry in kept[count : node.saved]:
            if entry is not None:
                total += entry[1] - now.get(entry[0], 0)
                now[entry[0]] = entry[1]
        count = max(count, node.saved)
        made = {number: size(storages[number], view_bytes) for number, view_bytes in node.outputs if number not in now}
        output = sum(in_the_end[number] for number in made if number in in_the_end)
        yield total + output, output, sum(nbytes for number, nbytes in made.items() if number not in in_the_end)


def node_flops(
    nodes: Sequence[Node], counted: Sequence[tuple[int, int | None]], ops: pd.DataFrame, op_ids: np.ndarray
) -> tuple[Any, Any]:
    """Returns the FLOPs of each node's own ops and those of the backward ops of these, null with an op of no rule.

    `counted` has the slot and the FLOPs of each op that ran. What autograd itself adds between two ops is no node's.
    """
    slots = np.array([slot for slot, _ in counted], np.int64)
    unknown = np.array([flops is None for _, flops in counted], bool)
    values = np.array([flops or 0 for _, flops in counted], object)
    ids = op_ids[slots] if len(slots) else slots
    forward_ids = ops["forward_op_id"].to_numpy(np.int64, na_value=-1)
    slot_of = np.full(len(ops) + 1, -1, np.int64)  # the last entry answers for -1
    known = np.flatnonzero(op_ids >= 0)
    slot_of[op_ids[known]] = known
    origins = slot_of[np.where(ids >= 0, np.append(forward_ids, -1)[ids], -1)]
    owners = (_node_of(nodes, own) for own in (slots, origins))
    forward, backward = (_sums(own, values, unknown, len(nodes)) for own in owners)
    return forward, backward


def _node_of(nodes: Sequence[Node], slots: np.ndarray) -> np.ndarray:
    """Returns the number of the node in which each slot lies, -1 for none."""
    spans = [(number, node.begin, node.end) for number, node in enumerate(nodes) if node.end > node.begin]
    numbers, begins, ends = np.array([*spans, (-1, np.iinfo(np.int64).max, 0)], np.int64).T
    place = np.searchsorted(begins, slots, "right") - 1
    return np.where((place >= 0) & (slots < ends[place]), numbers[place], -1)


def _sums(owners: np.ndarray, values: np.ndarray, unknown: np.ndarray, count: int) -> Any:
    totals: list[int | None] = [0] * count
    for owner, value, is_unknown in zip(owners.tolist(), values.tolist(), unknown.tolist(), strict=True):
        if owner >= 0:
            before = totals[owner]
            totals[owner] = None if is_unknown or before is None else before + value
    return pd.array(totals, dtype="Int64")
