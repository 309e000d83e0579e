"""Finds the Inf that a step makes and throws away: computed on, element by element, only until integers are made of it.

T5 takes the logarithm of positions, 0 among them, casts it to integers and lets where() choose others. The cast comes
after the op that made the Inf, so the question is asked when the step is over, of the frames, and for findings only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from heapq import heappop, heappush

import numpy as np
import pandas as pd

from nbkit.capture.calls.call_of import op_of
from nbkit.capture.replay.op_traits import A_VIEW, OpTraits, traits_of
from nbkit.errors import OptionError
from nbkit.ops.families import CASTS
from nbkit.step.step import Flags, Ints, Step

# A gradient is needed, though it requires none itself; so is what an optimizer steps by.
NEEDED_IN = ("backward", "optimizer")
# An op, and a storage that holds the values from there on: (op_id, storage_id).
Carrier = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Dataflow(Step):
    """Says which ops met a storage, and which tensors an op met; `alive` are the storages that outlived the step."""

    alive: set[int]

    @cached_property
    def names(self) -> np.ndarray:
        return self.ops["op"].to_numpy()

    @cached_property
    def storage(self) -> Ints:
        """Returns the storage of each tensor; -1 of one without its own."""
        return np.maximum(self.memory, -1)

    @cached_property
    def is_integer(self) -> Flags:
        return self.tensors["dtype"].str.match(r"u?int|bool").to_numpy(dtype=bool)

    @cached_property
    def _by_storage(self) -> tuple[Ints, Ints]:
        """Returns the rows by storage, and the storage of each of them."""
        rows = np.argsort(self.storage, kind="stable")
        return rows, self.storage[rows]

    def is_discarded(self, op_id: int, position: int, doubtful: set[int]) -> bool:
        """Returns whether of this result, which needs no gradient, nothing is left but integers.

        `doubtful` are the ops at which something else goes wrong: what they make of the result is a finding.
        """
        made = self.results(op_id)
        made = made[self.positions[made] == position]
        if len(made) != 1 or self.requires_grad[self.rows(op_id)].any():
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
        op, results = traits(self.names[op_id]), self.results(op_id)
        if self.requires_grad[self.rows(op_id)].any() or not len(results):
            return None
        is_integer = self.is_integer[results]
        if op.packet in CASTS and is_integer.all():
            return set()
        if is_integer.any() or not (op.is_pointwise or op.packet in CASTS or op.leave_out == A_VIEW):
            return None
        return set(self.storage[results].tolist())

    def results(self, op_id: int) -> Ints:
        """Returns the rows of what an op made or wrote to."""
        rows = self.rows(op_id)
        return rows[self.is_output[rows]]

    def met_by(self, storage: int, since: int) -> Iterator[int]:
        """Yields the ops after `since` that read or write a storage, in call order."""
        rows, in_order = self._by_storage
        ops = np.unique(self.op_ids[rows[slice(*np.searchsorted(in_order, [storage, storage + 1]))]])
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
