"""Says in words where two executions first diverge: the place on both sides, the error there and before, the kind."""

from collections.abc import Container
from typing import Any

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.kinds.arguments import other_argument, other_number
from nbkit.analysis.align.kinds.find import kind_of
from nbkit.analysis.align.kinds.indices import NAME as OTHER_INDICES
from nbkit.analysis.align.kinds.precision.casts import cast_and_back
from nbkit.analysis.align.kinds.precision.products import reduced_product
from nbkit.analysis.align.kinds.read import kind_of_read, missing_step
from nbkit.analysis.align.region import Kind, Piece, Region
from nbkit.analysis.align.rerun import computing, is_same, other_operands
from nbkit.analysis.align.side import Side, values_of

# Agreed values around a beginning that a kind may need, at most.
MOST_AGREED = 40


# These kinds are of what is made beside the activations: masks, rotary and other positions.
OF_TABLES = ("mask_shifted", "mask_inverted", "missing_mask", "rotary_base", "position_shifted")


def first_divergence(alignment: Alignment) -> dict[str, Any] | None:
    """Returns the first beginning as data; null where none was found.

    The keys are `message`, `kind`, `kind_message` and `kind_explained` (null where no kind explains it), `error`,
    `error_before` (the largest of what it reads), `local_error`, `left_id` and `right_id` of the pair at which it
    shows, and `left` and `right`: null, or name, op, module, source and result_id of where it begins on that side.
    `unknown` counts the ops before it whose values were not kept, at each of which it may begin just as well.
    """
    if not alignment.events:
        return None
    event = alignment.events[0]
    is_told = event.message is not None and alignment.left.execution.origin != "trace"
    kind = None if event.unknown or is_told else kind_of_event(alignment, event)
    error = alignment.error_of(event.match) if event.match else None
    local = alignment.local.get(event.match.right) if event.match else None
    before = error_before(alignment, event)
    places = _places(alignment, event, kind)
    return {
        "message": message_of(alignment, event, kind),
        "kind": None if kind is None else kind.name,
        "kind_message": None if kind is None else kind.message,
        "kind_explained": None if kind is None else kind.explained,
        "error": error,
        "error_before": before,
        "local_error": None if local is None else local.error,
        "left_id": event.match.left if event.match else None,
        "right_id": event.match.right if event.match else None,
        "left": places[0],
        "right": places[1],
        "unknown": event.unknown,
    }


def error_before(alignment: Alignment, event: Event) -> float | None:
    """Returns the largest error of what a beginning reads and the other side has; null where that is not known."""
    read = [source for number in event.right for source in alignment.right.results[number].sources]
    matches = [alignment.matches.left_of[source] for source in read if source in alignment.matches.left_of]
    errors = [alignment.error_of(match) for match in matches if match.right not in event.right]
    return max((error for error in errors if error is not None), default=None)


def _places(alignment: Alignment, event: Event, kind: Kind | None) -> list[dict[str, Any] | None]:
    """Returns where a beginning lies on both sides.

    A mask or a table that is another one lies where it is made. A side that has nothing there but the op at which it
    shows lacks what the other one does: its place is that op. The module of a place is always that of its own op.
    """
    sides = (alignment.left, event.left), (alignment.right, event.right)
    places = [_place(side, inside) for side, inside in sides]
    if kind is not None and kind.name in OF_TABLES:
        for which, (side, _) in enumerate(sides):
            made = [number for number in event.tables[which] if not _only_passes(side, number)]
            places[which] = _place(side, tuple(made[-1:])) or places[which]
    elif kind is not None:
        for which, (side, inside) in enumerate(sides):
            at = kind.at[which]
            inner = tuple(one for one in inside if side.is_main[one]) if at is None else (at,)
            places[which] = _place(side, inner) or places[which]
    return places


def shards(alignment: Alignment, readers: Container[int] | None = None) -> list[str]:
    """Returns a sentence for each parameter and buffer that one side holds a part of; of those that some results read.

    So it is where one process of several holds a shard.
    """
    found = []
    for match in alignment.matches.all:
        ours, theirs = alignment.left.results[match.left], alignment.right.results[match.right]
        if match.part is None or ours.kind not in ("parameter", "buffer") or ours.name != theirs.name:
            continue
        is_read = readers is None or any(
            one in readers or any(further in readers for further in side.execution.readers[one])
            for side, number in ((alignment.left, match.left), (alignment.right, match.right))
            for one in side.execution.readers[number]
        )
        if is_read:
            sides = [("right", theirs, ours), ("left", ours, theirs)]
            side, part, whole = sides[match.part != "slice"]
            shapes = [list(one.shape) for one in (part, whole)]
            found.append(f"the {side} side holds a shard of {ours.name}, {shapes[0]} of {shapes[1]}")
    return found


def _what(alignment: Alignment, event: Event, kind: Kind | None) -> str:
    """Returns what begins at a pair of ops: what it reads is the same if all of it was compared, integers included."""
    match = event.match
    assert match is not None
    if kind is not None and any(one is not None for one in kind.at):
        return "it reads what one side has rounded"
    if event.unknown:
        ops = f"any of the {event.unknown} ops" if event.unknown > 1 else "the op"
        return f"it gives something else, which may begin here or at {ops} before it whose values were not kept"
    if held := shards(alignment, {*event.left, *event.right}):
        return f"{held[0]}: it gives something else than the whole"
    read = [_inputs(side, inside) for side, inside in ((alignment.left, event.left), (alignment.right, event.right))]
    ends = computing(alignment.left, match.left), computing(alignment.right, match.right)
    others = other_operands(alignment, *ends)
    if others == [] or (others is None and _has_all(alignment, *read)):
        return "it reads the same on both sides and gives something else"
    return "it reads another value on the right and gives something else" if others else "it gives something else"


def _has_all(alignment: Alignment, lefts: tuple[int, ...], rights: tuple[int, ...]) -> bool:
    """Returns whether all that both sides read has a partner that agrees, or is an equal value there."""
    is_there = [[is_same(alignment, first, second) for second in rights] for first in lefts]
    return all(map(any, is_there)) and all(map(any, zip(*is_there, strict=True)))


def _place(side: Side, inside: tuple[int, ...]) -> dict[str, Any] | None:
    """Returns where a beginning lies on one side: the first op in it that does more than to pass values on."""
    if not inside:
        return None
    ops = [number for number in inside if side.results[number].kind == "op" and not _only_passes(side, number)]
    number, is_read = (ops or inside[-1:])[0], side.execution.readers
    if side.results[number].kind == "constant":  # what computes with it says more
        while is_read[number] and (side.is_passing[number] or side.results[number].kind == "constant"):
            number = is_read[number][0]
    result = side.results[number]
    return {
        "result_id": result.result_id,
        "name": result.name,
        "op": result.op,
        "module": module_of(side, result.result_id),
        "source": result.source,
        "kind": result.kind,
    }


def _only_passes(side: Side, number: int) -> bool:
    """Returns whether an op changes no value and no order, or turns a weight."""
    if not side.is_passing[number]:
        return False
    return side.does[number] != "permute" or side.results[side.results[number].sources[0]].kind != "op"


def module_of(side: Side, number: int) -> str | None:
    """Returns the module of a result; of a parameter or buffer the one that holds it, else that of its first reader."""
    result = side.results[number]
    if result.module is not None or result.kind == "op":
        return result.module
    if result.kind in ("parameter", "buffer") and "." in result.name:
        return result.name.rpartition(".")[0]
    return next((side.results[reader].module for reader in side.execution.readers[number]), None)


def kind_of_event(alignment: Alignment, event: Event) -> Kind | None:
    """Returns the kind of a beginning; null where there is no pair, or no kind explains it."""
    if event.match is None:
        return other_argument(alignment, event) or missing_step(alignment, event)
    kind = cast_and_back(alignment, event) or kind_of_read(alignment, event) or _kind_of_values(alignment, event)
    kind = kind or reduced_product(alignment, event) or other_number(alignment, event)
    return kind or missing_step(alignment, event)


def _kind_of_values(alignment: Alignment, event: Event) -> Kind | None:
    left, right, match = alignment.left, alignment.right, event.match
    if match is None:
        return None
    values = values_of(left, right, match.left, match.right)
    if values[0] is None or values[1] is None or match.relation is None:
        return None
    local = alignment.local.get(match.right)
    in_place = None if local is None else match.relation.to_left(local.value)
    regions = [
        tuple(sorted({*numbers[:-1], *tables})) + numbers[-1:]
        for numbers, tables in zip((event.left, event.right), event.tables, strict=True)
    ]
    inside = [_pieces(side, numbers) for side, numbers in zip((left, right), regions, strict=True)]
    reads = [_inputs(side, numbers) for side, numbers in zip((left, right), regions, strict=True)]
    region = Region(
        values[0],
        match.relation.to_left(values[1]),
        in_place,
        left.results[match.left].kind,
        _pieces(left, reads[0]),
        _pieces(right, reads[1]),
        inside[0] if left.results[match.left].kind == "op" else (),
        inside[1] if left.results[match.left].kind == "op" else (),
        _agreed(alignment, event, reads),
    )
    return kind_of(region)


def _pieces(side: Side, numbers: tuple[int, ...]) -> tuple[Piece, ...]:
    return tuple(Piece(side.results[number], side.execution.value(number)) for number in numbers)


def _inputs(side: Side, inside: tuple[int, ...]) -> tuple[int, ...]:
    read = dict.fromkeys(source for number in inside for source in side.results[number].sources)
    return tuple(number for number in read if number not in inside)


def _agreed(alignment: Alignment, event: Event, reads: list[tuple[int, ...]]) -> dict[str, np.ndarray[Any, Any]]:
    """Returns values that both sides have, by name on the left: those read, and those of as many elements or state."""
    left, matches = alignment.left, alignment.matches
    size = left.numel[event.match.left] if event.match else 0
    near = [match.left for match in matches.right_of.values() if match.agrees and left.numel[match.left] == size]
    near.sort(key=lambda number: abs(number - (event.match.left if event.match else 0)))
    known = [number for number in reads[0] if number in matches.right_of]
    found = {}
    for number in [*known, *near[:MOST_AGREED]]:
        value = left.execution.value(number)
        if value is not None:
            found[left.results[number].name] = value
    return found


def message_of(alignment: Alignment, event: Event, kind: Kind | None) -> str:
    """Returns what begins at an event, in words that follow the name of the place, and the kind in a sentence."""
    match, places = event.match, _places(alignment, event, kind)
    where = next((place for place in places if place and place["kind"] == "input"), places[0] or places[1])
    assert where is not None
    if event.message is not None:
        return event.message
    if kind is not None and match is None and kind.name != "missing_step":
        return f"it reads the same on both sides and gives something else. {kind.message}"
    if kind is not None and kind.name == OTHER_INDICES:
        return kind.message
    if match is None:
        side, other = ("left", "right") if event.left else ("right", "left")
        why = f", and nothing made of it agrees with the {other} one" if kind is None else f". {kind.message}"
        return f"only the {side} one has it{why}"
    error = alignment.error_of(match)
    state = alignment.left.results[match.left]
    # An input of a recorded step is a constant to its trace.
    if state.kind == alignment.right.results[match.right].kind == "constant":
        what = f"the constant {state.name}, which it reads, has other values on the right"
    elif where["kind"] != "op":
        what = f"the {where['kind']} {where['name']} has other values on the right"
    else:
        what = _what(alignment, event, kind)
    size = "" if error is None else f" (relative error {error:.2g})" if np.isfinite(error) else " (NaN, Inf or zeros)"
    return f"{what}{size}" + (f". {kind.message}" if kind else "")
