"""Builds the table of a model's nodes from what was noted while it ran."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.cost.analyzer.nodes import Described, Node
from nbkit.capture.cost.saved_tensors import Saved
from nbkit.capture.cost.storages import BUFFER, PARAMETER, Storage
from nbkit.schema import NODE_COSTS, TEXT

# The bytes of a saved or made tensor by its memory and its own size.
Sizing = Callable[[Storage, int], int]
SIZINGS: dict[str, Sizing] = {
    "storage": lambda storage, view_bytes: storage.nbytes,
    "view": lambda storage, view_bytes: view_bytes,
}
Memory = dict[int, int]  # bytes by number
Accumulated = Callable[[Memory, Set[int]], int]  # gets what a node saves, and what of its outputs is saved later


def node_costs(
    nodes: Sequence[Node],
    saved: Sequence[Saved],
    storages: Sequence[Storage],
    options: Mapping[str, str],
    *,
    flops: tuple[Any, Any],
    modules: Sequence[str | None],
) -> pd.DataFrame:
    """Returns the frame NODE_COSTS; `flops` are those of forward and backward pass of each node, null where unknown.

    Source: class MetaInfo of the Colossal-AI Analyzer, colossalai/_analyzer/fx/node_util.py.
    """
    sizes = [*_sizes(nodes, saved, storages, SIZINGS[options["sizing"]], options["convention"])]
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
            **{
                name: pd.array([getattr(node.described, name) for node in nodes], dtype=TEXT)
                for name in Described._fields
            },
        }
    )


def _sizes(
    nodes: Sequence[Node], saved: Sequence[Saved], storages: Sequence[Storage], size: Sizing, convention: str
) -> Iterator[tuple[int, int, int]]:
    """Yields accumulate, output and temp of each node."""
    kept = [_kept(of, size) for of in saved[: nodes[-1].saved]]
    in_the_end: Memory = dict(filter(None, kept))
    accumulated = ACCUMULATED[convention](in_the_end)
    so_far: set[int] = set()
    count = 0
    for node in nodes:
        new: Memory = dict(filter(None, kept[count : node.saved]))
        count = max(count, node.saved)
        so_far.update(new)
        made = {number: size(storages[number], nbytes) for number, nbytes in node.outputs if number not in so_far}
        later = made.keys() & in_the_end.keys()
        temp = sum(nbytes for number, nbytes in made.items() if number not in later)
        yield accumulated(new, later), sum(in_the_end[number] for number in later), temp


def _accumulated(in_the_end: Memory) -> Accumulated:
    """Returns what gives the bytes that a node and those before it have saved, or made for one that saves them."""
    credited: set[int] = set()
    total = 0

    def accumulated(new: Memory, later: Set[int]) -> int:
        nonlocal total
        first = (new.keys() | later) - credited
        credited.update(first)
        total += sum(in_the_end[number] for number in first)
        return total

    return accumulated


def _accumulated_of_analyzer(in_the_end: Memory) -> Accumulated:
    """Returns the same as the Analyzer has it: a node's outputs count before they are saved, but in its own row only.

    A memory that is saved again counts from there on as the tensor that was saved last.
    """
    sizes: Memory = {}
    total = 0

    def accumulated(new: Memory, later: Set[int]) -> int:
        nonlocal total
        total += sum(nbytes - sizes.get(number, 0) for number, nbytes in new.items())
        sizes.update(new)
        return total + sum(in_the_end[number] for number in later)

    return accumulated


ACCUMULATED = {"nbkit": _accumulated, "analyzer": _accumulated_of_analyzer}


def _kept(saved: Saved, size: Sizing) -> tuple[int, int] | None:
    """Returns number and bytes of a saved tensor's memory; None for parameters and buffers, which stay anyway."""
    held = saved.storage
    stays = saved.is_parameter or held.kind in (PARAMETER, BUFFER)
    return None if stays else (held.number, size(held, saved.view_bytes))


def node_flops(
    nodes: Sequence[Node], counted: Sequence[tuple[int, int | None]], ops: pd.DataFrame, op_ids: np.ndarray
) -> tuple[Any, Any]:
    """Returns the FLOPs of each node's own ops and those of the backward ops of these, null with an op of no rule.

    `counted` has the slot and the FLOPs of each op that ran. What autograd itself adds between two ops is no node's.
    """
    values = [flops for _, flops in counted]
    ids = op_ids[np.array([slot for slot, _ in counted], np.int64)]
    node_of = _node_of(nodes, ops, op_ids)
    forward_of = np.append(ops["forward_op_id"].to_numpy(np.int64, na_value=-1), -1)
    origins = forward_of[ids]
    # Ops of a part that is computed again in the backward pass are no node's: follow them to what needed that part.
    while (is_again := (origins >= 0) & (node_of[origins] < 0)).any():
        origins = np.where(is_again, forward_of[origins], origins)
    return _sums(node_of[ids], values, len(nodes)), _sums(node_of[origins], values, len(nodes))


def _node_of(nodes: Sequence[Node], ops: pd.DataFrame, op_ids: np.ndarray) -> np.ndarray:
    """Returns the number of the node of each op, -1 for none; the last entry answers for -1."""
    node_of = np.full(len(ops) + 1, -1, np.int64)
    for number, node in enumerate(nodes):
        ids = op_ids[node.begin : node.end]
        node_of[ids[ids >= 0]] = number
    return node_of


def _sums(owners: np.ndarray, values: Sequence[int | None], count: int) -> Any:
    totals: list[int | None] = [0] * count
    for owner, value in zip(owners.tolist(), values, strict=True):
        before = totals[owner]
        if owner >= 0:
            totals[owner] = None if value is None or before is None else before + value
    return pd.array(totals, dtype="Int64")
