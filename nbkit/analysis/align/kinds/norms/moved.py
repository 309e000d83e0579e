"""Tests by the graph whether a norm stands before a block on one side, and behind the sum with it on the other."""

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.region import Kind
from nbkit.analysis.align.rerun import computing, made_of
from nbkit.analysis.align.side import Side

NORMS = ("layer_norm", "rms_norm")


def norm_place_of(alignment: Alignment, event: Event, left_read: int, right_read: int) -> Kind | None:
    """Tests whether the norm of one side reads x, and that of the other one x plus what a block makes of it.

    The block has to be there on the side whose norm reads x, and to be made from that norm.
    """
    assert event.match is not None
    sides = alignment.left, alignment.right
    ends, reads = (event.match.left, event.match.right), (left_read, right_read)
    if not all(_is_norm(side, end) for side, end in zip(sides, ends, strict=True)):
        return None
    for before, name, other in ((0, "left", "right"), (1, "right", "left")):
        behind = 1 - before
        pairs = [(match.left, match.right) for match in alignment.matches.all if match.agrees]
        partners = {pair[behind] for pair in pairs if pair[before] == reads[before]}
        if not _is_sum_with(sides[behind], reads[behind], partners):
            continue
        block = _weights_between(sides[behind], reads[behind], partners)
        known = {pair[before] for pair in pairs if pair[behind] in block}
        if _reads_one(sides[before], ends[before], known):
            what = f"The {name} one normalizes what the block reads, the {other} one the sum behind it."
            return Kind("norm_place", what, 0.0)
    return None


def _is_norm(side: Side, number: int) -> bool:
    readers = side.execution.readers[number]
    return side.does[number] in NORMS or any(side.does[reader] == "mean" for reader in readers)


def _is_sum_with(side: Side, number: int, addends: set[int]) -> bool:
    number = computing(side, number)
    return side.does[number] == "add" and not addends.isdisjoint(side.results[number].sources)


def _weights_between(side: Side, number: int, start: set[int]) -> set[int]:
    """Returns the parameters that are read on the way from some results to another one."""
    found = made_of(side, number, lambda one: one not in start and one >= min(start))
    return {one for one in found if side.results[one].kind == "parameter"}


def _reads_one(side: Side, number: int, weights: set[int]) -> bool:
    """Returns whether an op behind a result reads one of some parameters."""
    readers = {reader for weight in weights for reader in side.execution.readers[weight]}
    behind = {number}
    for one in range(number + 1, len(side)):
        sources = side.results[one].sources
        if any(source in behind for source in sources):
            behind.add(one)
            if one in readers or any(source in readers for source in sources):
                return True
    return False
