"""Finds the NaN and Inf that torch itself takes out before anything keeps them.

A formula of torch is computed everywhere and masked where it does not hold: the gradient of a norm is 0 / 0 at zero,
where masked_fill_() puts 0. A mask is the logarithm of zeros and ones; what is added to it goes into a softmax. Whether
something else keeps the value shows later, so the question is asked when the step is over, for findings only.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import pandas as pd

from nbkit.capture.check.discarded import Dataflow, traits
from nbkit.capture.check.masks import MOVING
from nbkit.capture.replay.op_traits import A_VIEW, CHANGED_FORM, OpTraits
from nbkit.ops.families import CASTS, CHOICES, MASK_READERS, OVERWRITING, UNFILLED
from nbkit.step.reachable import reachable

SAME_VALUES = (A_VIEW, CHANGED_FORM)
BEGUN = ("nan", "inf", "overflow")


class Held(NamedTuple):
    """Says of a result that is not finite what it holds."""

    op: int  # index into Recording.ops, or op_id
    position: int
    has_inf: bool
    is_mask: bool  # nothing worse than -Inf


class Carrier(NamedTuple):
    """A storage that holds the values from an op on."""

    since: int
    storage: int
    has_inf: bool
    is_mask: bool


@dataclass(frozen=True)
class Use:
    """What an op does with a carrier."""

    carriers: tuple[Carrier, ...] = ()  # what holds the values from then on, too
    is_read: bool = True
    is_end: bool = False  # the storage holds other values from then on
    is_kept: bool = False  # something else is done with the values


UNREAD, KEPT, TAKEN_OUT = Use(is_read=False), Use(is_kept=True), Use()


class Steps:
    """Says of the ops of a recording where they stand and what they made that is not finite."""

    def __init__(self, ops: pd.DataFrame, flow: Dataflow, held: list[Held]) -> None:
        self.flow = flow
        self.is_backward = (ops["phase"] == "backward").to_numpy(dtype=bool)
        self.call = ops["parent_id"].fillna(-1).to_numpy(dtype=np.int64)
        self.forward = ops["forward_op_id"].fillna(-1).to_numpy(dtype=np.int64)
        self.held: dict[int, list[Held]] = defaultdict(list)
        for each in held:
            self.held[each.op].append(each)
        sizes: dict[int, int] = {}
        for storage, size in zip(flow.storage.tolist(), flow.sizes.tolist(), strict=True):
            sizes[storage] = max(size, sizes.get(storage, 0))
        self.sizes = sizes

    def carriers(self, op: int) -> list[Carrier]:
        """Returns what holds the results of an op that are not finite; one of storage -1 for each that is not known."""
        made = []
        for each in self.held.get(op, ()):
            results = self.flow.results(op)
            at = results[self.flow.positions[results] == each.position]
            storage = int(self.flow.storage[at[0]]) if len(at) == 1 else -1
            made.append(Carrier(op, storage, each.has_inf, each.is_mask))
        return made

    def is_whole(self, op: int, storage: int) -> bool:
        """Returns whether a result of an op is as large as anything that was seen of its storage."""
        results = self.flow.results(op)
        of_storage = results[self.flow.storage[results] == storage]
        return bool((self.flow.sizes[of_storage] == self.sizes[storage]).any())


class Formula:
    """Follows what one op made: through the backward pass, or the ops of the API call that it is a part of.

    With `as_mask` it is the -Inf of a mask, which may be kept and is added to scores anywhere.
    """

    def __init__(self, steps: Steps, first: int, *, as_mask: bool) -> None:
        self.steps, self.flow, self.first, self.as_mask = steps, steps.flow, first, as_mask

    def takes_out(self, position: int) -> bool:
        """Returns whether all that reads this result, or what is made of it, has taken out what is not finite."""
        made = self.flow.results(self.first)
        storages = self.flow.storage[made[self.flow.positions[made] == position]]
        carriers = [each for each in self.steps.carriers(self.first) if each.storage in storages]
        seen: set[Carrier] = set()
        if not carriers:
            return False
        while carriers:
            carrier = heappop(carriers)  # in call order
            more = [] if carrier in seen else self._carried_on(carrier)
            if more is None:
                return False
            seen.add(carrier)
            for each in more:
                heappush(carriers, each)
        return True

    def _carried_on(self, carrier: Carrier) -> list[Carrier] | None:
        """Returns what carries the values on; None if something keeps them, or nothing reads them."""
        if carrier.storage < 0 or (self.as_mask and not carrier.is_mask):
            return None
        more: list[Carrier] = []
        is_read = False
        for op in self.flow.met_by(carrier.storage, carrier.since):
            use = self._use(op, carrier)
            if use.is_kept:
                return None
            more += use.carriers
            is_read |= use.is_read
            if use.is_end:
                return more if is_read else None
        is_alive = carrier.storage in self.flow.alive and not self.as_mask
        return more if is_read and not is_alive else None

    def _use(self, op: int, carrier: Carrier) -> Use:
        op_traits, results = traits(self.flow.names[op]), self.flow.results(op)
        storages = set(self.flow.storage[results].tolist())
        if reads_shape(op_traits) or (op_traits.leave_out in SAME_VALUES and storages <= {carrier.storage}):
            return UNREAD
        if carrier.storage in storages and self._overwrites(op, carrier.storage):
            return Use(is_read=False, is_end=self.steps.is_whole(op, carrier.storage))
        if not self._is_part(op) or op_traits.leave_out not in (None, A_VIEW) or not len(results):
            return KEPT
        if op_traits.leave_out == A_VIEW:  # that copied
            return Use(tuple(carrier._replace(since=op, storage=storage) for storage in storages))
        return self._computed(op, op_traits, carrier, results)

    def _computed(self, op: int, op_traits: OpTraits, carrier: Carrier, results: np.ndarray) -> Use:
        """Returns what an op does with the values that it reads."""
        if op in self.steps.held:
            carriers = tuple(self.steps.carriers(op))
            return Use(carriers, is_end=any(each.storage == carrier.storage for each in carriers))
        if self.flow.is_integer[results].all():
            # What is compared is masked by that; alone it takes nothing out.
            return UNREAD if op_traits.is_pointwise and op_traits.packet not in CASTS else KEPT
        if not self._chooses(op, op_traits.packet, op_traits.is_pointwise, carrier.has_inf):
            return KEPT
        is_written = bool((self.flow.storage[results] == carrier.storage).any())
        return Use(is_end=is_written and self.steps.is_whole(op, carrier.storage))

    def _overwrites(self, op: int, storage: int) -> bool:
        """Returns whether an op writes to a storage that it does not read."""
        op_traits, rows = traits(self.flow.names[op]), self.flow.rows(op)
        given = int((self.flow.storage[rows[~self.flow.is_output[rows]]] == storage).sum())
        return (op_traits.packet in OVERWRITING or op_traits.is_out) and given <= 1

    def _is_part(self, op: int) -> bool:
        """Returns whether an op belongs to what the first one does; who reads a gradient outside keeps it."""
        steps = self.steps
        if steps.is_backward[op] or steps.is_backward[self.first]:
            return bool(steps.is_backward[op])
        return self.as_mask or 0 <= steps.call[op] == steps.call[self.first]

    def _chooses(self, op: int, packet: str, is_pointwise: bool, has_inf: bool) -> bool:
        """Returns whether an op whose results are finite takes out what is not, and does not compute with it."""
        if self.as_mask:
            return packet in MASK_READERS or packet in MOVING or "attention" in packet
        if self.steps.is_backward[op] and self.steps.forward[op] == self.first:
            return True  # its own derivative
        return packet in CHOICES or packet in MOVING or (is_pointwise and not has_inf)


def reads_shape(op: OpTraits) -> bool:
    """Returns whether an op reads of a tensor no more than what it is like: zeros_like, new_ones, empty."""
    return op.packet.endswith("_like") or op.packet.startswith("new_") or op.packet in UNFILLED


def hidden(bad: pd.DataFrame, ops: pd.DataFrame, flow: Dataflow, held: list[Held]) -> np.ndarray:
    """Returns of each bad tensor whether torch takes out what is not finite before anything keeps it."""
    steps = Steps(ops, flow, held)
    begun = bad["kind"].isin(BEGUN).to_numpy(dtype=bool)
    op_ids, positions = bad["op_id"].to_numpy(dtype=np.int64), bad["position"].to_numpy(dtype=np.int64)
    is_hidden, is_mask = np.zeros(len(bad), dtype=bool), np.zeros(len(bad), dtype=bool)
    for row in np.flatnonzero(begun):
        op, position = int(op_ids[row]), int(positions[row])
        may_be = bool(bad["is_masked"].iloc[row]) or not needs_gradient(flow, op)
        is_mask[row] = may_be and Formula(steps, op, as_mask=True).takes_out(position)
        is_hidden[row] = is_mask[row] or Formula(steps, op, as_mask=False).takes_out(position)
    while True:  # what was left may be the gradient of one that is hidden
        left = set(op_ids[begun & ~is_hidden].tolist())
        told = [row for row in np.flatnonzero(is_hidden) if not is_mask[row] and _is_told(steps, op_ids[row], left)]
        if not told:
            return is_hidden
        is_hidden[told] = False


def _is_told(steps: Steps, op: int, left: set[int]) -> bool:
    """Returns whether an op is named all the same: its gradient or its forward op is wrong, or its gradient unknown."""
    if steps.is_backward[op]:
        return int(steps.forward[op]) in left
    gradients = np.flatnonzero(steps.is_backward & (steps.forward == op)).tolist()
    return not left.isdisjoint(gradients) or (needs_gradient(steps.flow, op) and not gradients)


def needs_gradient(flow: Dataflow, op: int) -> bool:
    return bool(flow.requires_grad[flow.rows(op)].any())


def reaches_gradients(bad: pd.DataFrame, ops: pd.DataFrame, flow: Dataflow, held: list[Held]) -> np.ndarray:
    """Returns of each bad tensor whether its NaN goes on, op by op, to an optimizer or to a gradient that stays."""
    steps, phases = Steps(ops, flow, held), ops["phase"].to_numpy()
    told = np.zeros(len(bad), dtype=bool)

    def carriers(ops: Iterable[int]) -> list[Carrier]:
        return [each for op in ops for each in steps.carriers(op) if not each.is_mask]

    def stays(carrier: Carrier) -> bool:
        phase, is_alive = phases[carrier.since], carrier.storage in flow.alive
        return bool(phase == "optimizer" or (phase == "backward" and is_alive))

    for row, op_id in enumerate(bad["op_id"].tolist()):
        reached = reachable(carriers([op_id]), lambda one: carriers(flow.met_by(one.storage, one.since)))
        told[row] = any(map(stays, reached))
    return told


def origins_of_inf(bad: pd.DataFrame, flow: Dataflow, held: list[Held]) -> list[int | None]:
    """Returns of each bad tensor the op among them that made the Inf that its op computed with; null for none."""
    made: dict[int, list[int]] = defaultdict(list)  # ops that put what is not finite there, by storage, in call order
    for op in sorted({each.op for each in held}):
        for storage in set(flow.storage[flow.results(op)].tolist()) - {-1}:
            made[storage].append(op)
    known = set(bad["op_id"][bad["kind"].isin(BEGUN)].tolist())
    found: list[int | None] = []
    for op_id, reads_inf in zip(bad["op_id"].tolist(), bad["reads_inf"].tolist(), strict=True):
        frontier, seen, origin = [op_id] if reads_inf else [], {op_id}, None
        while frontier and origin is None:
            op = frontier.pop()
            rows = flow.rows(op)
            read = [made.get(storage, []) for storage in flow.storage[rows[~flow.is_output[rows]]].tolist()]
            makers = {ops[at - 1] for ops in read if (at := bisect_left(ops, op))} - seen
            origin = max(makers & known, default=None)
            seen |= makers
            frontier += sorted(makers)
        found.append(origin)
    return found
