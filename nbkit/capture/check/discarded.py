"""Finds the Inf that a step makes and throws away: computed on, element by element, only until integers are made of it.

T5 takes the logarithm of positions, 0 among them, casts it to integers and lets where() choose others. The cast comes
after the op that made the Inf, so the question is asked when the step is over, of the frames, and for findings only.
"""

from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush

import numpy as np
import pandas as pd

from nbkit.capture.calls.call_of import op_of
from nbkit.capture.replay.op_traits import OpTraits, traits_of
from nbkit.errors import OptionError

# A gradient is needed, though it requires none itself; so is what an optimizer steps by.
NEEDED_IN = ("backward", "optimizer")
CASTS = frozenset({"_to_copy", "copy_"})
# Memory that an op has read or written from this op on: (op_id, storage_id).
Carrier = tuple[int, int]


class Dataflow:
    """Says which ops met a storage, and which tensors an op met; `alive` are the storages that outlived the step."""

    def __init__(self, ops: pd.DataFrame, tensors: pd.DataFrame, alive: set[int]) -> None:
        self.names = ops["op"].to_numpy()
        self.alive = alive
        self.op_id = tensors["op_id"].to_numpy()  # in order
        self.storage = tensors["storage_id"].fillna(-1).to_numpy(dtype=np.int64)
        self.position = tensors["position"].to_numpy()
        self.is_output = (tensors["role"] == "output").to_numpy()
        self.is_integer = tensors["dtype"].str.match(r"u?int|bool").to_numpy(dtype=bool)
        self.requires_grad = tensors["requires_grad"].to_numpy()
        self.by_storage = np.argsort(self.storage, kind="stable")
        self.in_order = self.storage[self.by_storage]

    def is_discarded(self, op_id: int, position: int, doubtful: set[int]) -> bool:
        """Returns whether of this result, which needs no gradient, nothing is left but integers.

        `doubtful` are the ops at which something else goes wrong: what they make of the result is a finding.
        """
        rows = self._rows(op_id)
        made = rows[self.is_output[rows] & (self.position[rows] == position)]
        if len(made) != 1 or self.requires_grad[rows].any():
            return False
        carriers: list[Carrier] = [(op_id, int(self.storage[made[0]]))]
        followed = set()
        while carriers:
            since, storage = heappop(carriers)  # each storage first by the op that wrote it first
            if storage in followed:
                continue
            followed.add(storage)
            later = None if storage < 0 or storage in self.alive else self._later_carriers(storage, since, doubtful)
            if later is None:
                return False
            for carrier in later:
                heappush(carriers, carrier)
        return True

    def _later_carriers(self, storage: int, since: int, doubtful: set[int]) -> list[Carrier] | None:
        """Returns what carries the values on after an op; None if other work is done with them, or none at all."""
        # A view is of the same storage, whose readers are followed.
        users = [op for op in self._met_by(storage, since) if traits(self.names[op]).leave_out != "views"]
        carriers: list[Carrier] = []
        for op in users:
            results = None if op in doubtful else self._carried_on(op)
            if results is None:
                return None
            carriers += [(op, result) for result in results]
        return carriers if users else None

    def _carried_on(self, op_id: int) -> list[int] | None:
        """Returns the storages of results that still hold the values, none after a cast; None if it does other work."""
        rows, op = self._rows(op_id), traits(self.names[op_id])
        results = rows[self.is_output[rows]]
        if self.requires_grad[rows].any():
            return None
        is_integer = self.is_integer[results]
        if op.packet in CASTS and is_integer.all():
            return []
        if not (op.is_pointwise or op.packet == "_to_copy") or is_integer.any():
            return None
        return [int(storage) for storage in self.storage[results]]

    def _rows(self, op_id: int) -> np.ndarray:
        return np.arange(*np.searchsorted(self.op_id, [op_id, op_id + 1]))

    def _met_by(self, storage: int, since: int) -> Iterator[int]:
        """Yields the ops after `since` that read or write a storage, in call order."""
        start, end = np.searchsorted(self.in_order, [storage, storage + 1])
        ops = np.unique(self.op_id[self.by_storage[start:end]])
        yield from ops[ops > since].tolist()


def discarded(findings: pd.DataFrame, ops: pd.DataFrame, tensors: pd.DataFrame, alive: set[int]) -> np.ndarray:
    """Returns of each finding whether it is an Inf that the step throws away."""
    may_be = (findings["kind"] == "inf") & (findings["nan_count"] == 0) & ~findings["phase"].isin(NEEDED_IN)
    thrown_away = may_be.to_numpy(dtype=bool, copy=True)
    if not thrown_away.any():
        return thrown_away
    flow, doubtful = Dataflow(ops, tensors, alive), set(findings["op_id"][~thrown_away].tolist())
    for row in np.flatnonzero(thrown_away):
        finding = findings.iloc[row]
        thrown_away[row] = flow.is_discarded(int(finding["op_id"]), int(finding["position"]), doubtful)
    return thrown_away


@cache
def traits(op: str) -> OpTraits:
    """Returns the traits of the op of this name; of one without a name of that form, those of a higher-order op."""
    try:
        return traits_of(op_of(op))
    except OptionError:
        return traits_of(op)
