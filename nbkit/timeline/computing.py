"""Tells apart calls of ops that compute from such that only hand on, or were stopped before they computed."""

import numpy as np

from nbkit.ops.families import family
from nbkit.timeline.events import ABSENT, MODULE, Events
from nbkit.timeline.links import BACKWARD, Flags, Links
from nbkit.timeline.names import STOP_MARK

SAVING = "aten::detach"  # what checkpoint() does with a tensor that is saved for the backward pass
# Their own kernels call no product: where there is one inside, a batching rule has made that of it.
PRODUCTS = frozenset(f"aten::{name}" for name in family("MATRIX_PRODUCTS mv addmv") | {"dot", "vdot"})


def handed_on(events: Events, links: Links, is_known: Flags) -> Flags:
    """Returns which calls of ops of known FLOPs a transform of torch.func, or a mode, hands on to others of such.

    Such a call has a call of the same op right in it, or is a product that has one in it: the op as the transform sees
    it, where shapes are those of one sample under vmap(). In that stands what computes, which may be another op: a
    batched product, or a product more for a derivative.
    """
    has_below = np.zeros(len(events) + 1, dtype=bool)  # the last entry answers for -1
    for rows in reversed(links.levels[1:]):
        has_below[links.parent[rows[is_known[rows] | has_below[rows]]]] = True
    # An op may call another overload of itself: its own kernel does, which writes into a given result.
    called = [f"{name}.{overload}" for name, overload in zip(events.name, events.texts("overload"), strict=True)]
    names = np.array([*called, ""], dtype=object)
    is_same = is_known & (names[links.parent] == names[:-1])
    holds_same = np.zeros(len(events) + 1, dtype=bool)
    holds_same[links.parent[is_same]] = True
    is_product = np.array([name in PRODUCTS for name in events.name], dtype=bool)
    result: Flags = is_known & has_below[:-1] & (is_same | holds_same[:-1] | is_product)
    return result


def raised(events: Events, links: Links) -> Flags:
    """Returns which calls of ops an exception is known to have ended: that of a checkpoint, in optime."""
    result = np.zeros(len(events) + 1, dtype=bool)  # the last entry answers for -1
    result[links.parent[events.named(STOP_MARK.__eq__)]] = True
    return np.asarray(result[:-1] & events.is_dispatcher_call)


def stopped(events: Events, links: Links) -> Flags:
    """Returns which calls saved tensors for the backward pass and did not compute.

    A checkpoint runs its part again until the last tensor that it needs is saved: an op saves what it takes before it
    computes, so that of the last one nothing more is there than what saves, and nothing follows in the calls around it.
    """
    holds, holds_other = (np.zeros(len(events) + 1, dtype=bool) for _ in range(2))
    is_saving = np.array([name in (SAVING, STOP_MARK) for name in events.name], dtype=bool)
    holds[links.parent[is_saving]] = True
    holds_other[links.parent[~is_saving]] = True
    result = holds[:-1] & ~holds_other[:-1] & (links.phase == BACKWARD) & events.is_dispatcher_call
    is_call = events.is_dispatcher_call | (events.kind == MODULE)
    for row in np.flatnonzero(result).tolist():
        result[row] = _ends_calls(links, row, is_call)
    return np.asarray(result)


def _ends_calls(links: Links, row: int, is_call: Flags) -> bool:
    """Returns whether nothing follows an op in the calls of ops and modules around it."""
    around = links.parent[row]
    while around != ABSENT and is_call[around]:
        if (links.parent[row + 1 :] == around).any():
            return False
        row, around = around, links.parent[around]
    return True
