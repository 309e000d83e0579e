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
from nbkit.capture.replay.op_traits import A_VIEW, OpTraits, traits_of
from nbkit.errors import OptionError
from nbkit.ops.families import CASTS

# A gradient is needed, though it requires none itself; so is what an optimizer steps by.
NEEDED_IN = ("backward", "optimizer")
# An op, and a storage that holds the values from there on: (op_id, storage_id).
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
        self.size_bytes = tensors["size_bytes"].fillna(0).to_numpy(dtype=np.int64)
        self.requires_grad = tensors["requires_grad"].to_numpy()
        self.by_storage = np.argsort(self.storage, kind="stable")
        self.in_order = self.storage[self.by_storage]

    def is_discarded(self, op_id: int, position: int, doubtful: set[int]) -> bool:
        """Returns whether of this result, which needs no gradient, nothing is left but integers.

        `doubtful` are the ops at which something else goes wrong: what they make of the result is a finding.
        """
        rows = self.rows(op_id)
        made = rows[self.is_output[rows] & (self.position[rows] == position)]
        if len(made) != 1 or self.requires_grad[rows].any():
            return False
        carriers: list[Carrier] = [(op_id, int(self.storage[made[0]]))]
        last_written: dict[int, int] = {}
        last_used: dict[int, int] = {}
        while carriers:
            since, storage = heappop(carriers)  # in call order
            is_known = storage in last_written
            last_written[storage] = since
            users = [] if is_known else self._users(storage, since, doubtful)
            if users is None:
                return False
            for user, results in users:
                if results != {storage}:
                    last_used[storage] = user
                for result in results:
                    heappush(carriers, (user, result))
        return all(last_used.get(storage, -1) > since for storage, since in last_written.items())

    def _users(self, storage: int, since: int, doubtful: set[int]) -> list[tuple[int, set[int]]] | None:
        """Returns the ops that meet a storage after an op, and what carries its values on; None if other work is done.

        Views are left out: whoever reads one reads the storage.
        """
        if storage < 0 or storage in self.alive:
            return None
        users = []
        for op in self.met_by(storage, since):
            results = None if op in doubtful else self._carried_on(op)
            if results is None:
                return None
            if results != {storage} or traits(self.names[op]).leave_out != A_VIEW:
                users.append((op, results))
        return users

    def _carried_on(self, op_id: int) -> set[int] | None:
        """Returns the storages of results that still hold the values, none after a cast; None if it does other work."""
        rows, op = self.rows(op_id), traits(self.names[op_id])
        results = rows[self.is_output[rows]]
        if self.requires_grad[rows].any() or not len(results):
            return None
        is_integer = self.is_integer[results]
        if op.packet in CASTS and is_integer.all():
            return set()
        if is_integer.any() or not (op.is_pointwise or op.packet in CASTS or op.leave_out == A_VIEW):
            return None
        return set(self.storage[results].tolist())

    def results(self, op_id: int) -> np.ndarray:
        """Returns the rows of what an op made or wrote to."""
        rows: np.ndarray = self.rows(op_id)
        found: np.ndarray = rows[self.is_output[rows]]
        return found

    def rows(self, op_id: int) -> np.ndarray:
        """Returns the rows of the tensors that an op met."""
        return np.arange(*np.searchsorted(self.op_id, [op_id, op_id + 1]))

    def met_by(self, storage: int, since: int) -> Iterator[int]:
        """Yields the ops after `since` that read or write a storage, in call order."""
        start, end = np.searchsorted(self.in_order, [storage, storage + 1])
        ops = np.unique(self.op_id[self.by_storage[start:end]])
        yield from ops[ops > since].tolist()


def discarded(bad: pd.DataFrame, ops: pd.DataFrame, flow: Dataflow) -> np.ndarray:
    """Returns of each bad tensor whether it is an Inf that the step throws away."""
    is_inf = (bad["kind"] == "inf") & (bad["nan_count"] == 0)
    thrown_away: np.ndarray = is_inf.to_numpy(dtype=bool, copy=True)
    if not thrown_away.any():
        return thrown_away
    thrown_away &= ~ops["phase"].isin(NEEDED_IN).to_numpy()[bad["op_id"].to_numpy()]
    doubtful = set(bad["op_id"][~thrown_away].tolist())
    for row in np.flatnonzero(thrown_away):
        op_id, position = bad["op_id"].iloc[row], bad["position"].iloc[row]
        thrown_away[row] = flow.is_discarded(int(op_id), int(position), doubtful)
    return thrown_away


@cache
def traits(op: str) -> OpTraits:
    """Returns the traits of the op of this name; of one without a name of that form, those of a higher-order op."""
    try:
        return traits_of(op_of(op))
    except OptionError:
        return traits_of(op)
