"""Finds what a divergence is where the ops of a pair do the same, but one of their operands is another value."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.allowance import region_of
from nbkit.analysis.align.beginnings.returned import output_numbers
from nbkit.analysis.align.differing import SLICING
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.kinds.arguments import argument_alone, other_padding
from nbkit.analysis.align.kinds.case import Case, Floats, divisors
from nbkit.analysis.align.kinds.indices import other_indices
from nbkit.analysis.align.kinds.linear import SUMS, factor_of, missing_residual
from nbkit.analysis.align.kinds.norms.moved import norm_place_of
from nbkit.analysis.align.kinds.orders import permuted_heads, repeated_heads, transposed
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.region import Array, Kind, Piece, Region
from nbkit.analysis.align.relations import relative_error
from nbkit.analysis.align.rerun import computing, explained, made_of
from nbkit.analysis.align.side import Side
from nbkit.ops.kinds import SQUARES

# Operands that differ by so many times the noise are other ones.
OTHER = 10
# Values of the same size that are tried as a residual.
MOST_TRIED = 40
# A step of its own, also where what it moves are whole heads.
MOVING = ("roll",)
# So many steps of one side alone are listed.
MOST_STEPS = 3


@dataclass(frozen=True)
class Operand:
    """Holds the one operand in which two ops that do the same differ, as result_ids and as values of one shape."""

    left: int
    right: int
    values: tuple[Array, Array]


def kind_of_read(alignment: Alignment, event: Event) -> Kind | None:
    """Returns the kind of a beginning at ops that do the same with another argument or operand; null if it is none."""
    if (kind := other_indices(alignment, event)) is not None:
        return kind
    if event.match is None or alignment.left.results[event.match.left].kind != "op":
        return None
    with np.errstate(all="ignore"):
        kind = _neighbors(alignment, event) or argument_alone(alignment, event) or other_padding(alignment, event)
        if kind is not None:
            return kind
        operand = _operand(alignment, event)
        return None if operand is None else _kind_of(alignment, event, operand)


def missing_step(alignment: Alignment, event: Event, of: Container[str] | None = None) -> Kind | None:
    """Tests whether one side reads as it is what the other one first passes through further ops, such as a norm.

    The right op runs again on what the left one reads; `explained` is what that leaves of the difference. Of an output,
    which nothing reads, it is how far it is off from what it is made of on the other side. `of` are the only steps.
    """
    left, right = alignment.left, alignment.right
    if event.match is None:
        which = 0 if event.left else 1
        ends = "ends with" if "trace" in (left.execution.origin, right.execution.origin) else "returns"
        found = (_left_out(alignment, which, pair, ends) for pair in output_numbers(left, right))
        kinds = (kind for kind, ops in filter(None, found) if (event.left or event.right)[0] in ops)
        return next(kinds, None)
    for match in _same_ops(alignment, event.match):
        if (operand := _operand(alignment, replace(event, match=match))) is None:
            continue
        instead = operand.values[0].reshape(right.results[operand.right].shape)
        for which, side in enumerate((left, right)):
            kind, ops = _left_out(alignment, which, (operand.left, operand.right), "reads") or (None, [])
            if kind is None or (of and not all(side.does[one] in of for one in ops)):
                continue
            if (rest := explained(alignment, match, {operand.right: instead})) is not None:
                return replace(kind, explained=rest, message=f"{kind.message}{_of_epsilon(side, match, which, ops)}")
    return None


def _same_ops(alignment: Alignment, match: Match) -> Iterator[Match]:
    """Yields the pair, then one op with those that do the same with the other, where the steps of one side moved it."""
    yield match
    left, right = alignment.left, alignment.right
    yield from (
        replace(match, right=one)
        for one in right.execution.readers[match.right]
        if right.does[one] == left.does[match.left]
    )
    yield from (
        replace(match, left=one)
        for one in left.execution.readers[match.left]
        if left.does[one] == right.does[match.right]
    )


def _of_epsilon(side: Side, match: Match, which: int, ops: list[int]) -> str:
    """Says what becomes of the epsilon of a norm whose squares are those of rows that were divided before."""
    square, name = (match.left, match.right)[which], ("left", "right")[which]
    means = [one for one in side.execution.readers[square] if side.does[one] == "mean"]
    has_epsilon = any(side.does[one] == "add" for mean in means for one in side.execution.readers[mean])
    if side.does[square] not in SQUARES or side.does[ops[-1]] != "divide" or not has_epsilon:
        return ""
    return f" So the {name} one's epsilon acts as if it were multiplied by the square of what it divides by."


def _left_out(alignment: Alignment, which: int, ends: tuple[int, int], reads: str) -> tuple[Kind, list[int]] | None:
    """Returns that one of two results is what the other one, on the side `which`, is made of by further ops, and these.

    Null where it is not.
    """
    names, sides = ("left", "right"), (alignment.left, alignment.right)
    more, less = sides[which], sides[1 - which]
    known = {number: pair for number, pair in alignment.matches.of(which).items() if pair.agrees}
    region = region_of(more, ends[which], known)
    ops = [one for one in region if one not in known and not more.is_passing[one] and more.results[one].kind == "op"]
    # Of views any one may stand where the region ends.
    read = computing(less, ends[1 - which])
    end = alignment.matches.partner(1 - which, read)
    if not ops or end not in [computing(more, one) for one in known.keys() & region]:
        return None
    if less.does[read] != more.does[end]:  # what is equal by chance was passed through another step
        return None
    through = ", ".join(more.results[one].name for one in ops[:MOST_STEPS]) + (", ..." if ops[MOST_STEPS:] else "")
    as_it_is = f"The {names[1 - which]} one {reads} {less.results[read].name} as it is"
    text = f"{as_it_is}, where the {names[which]} one has {through} between."
    return Kind("missing_step", text, alignment.error_of(known[end]) or 0.0), ops


def _kind_of(alignment: Alignment, event: Event, operand: Operand) -> Kind | None:
    if (kind := _other_state(alignment, operand)) is not None:
        return kind
    if not (alignment.left.is_main[operand.left] and alignment.right.is_main[operand.right]):
        return None
    for first, second in _with_heads(*operand.values):
        if (kind := repeated_heads(Case(Region(first, second)))) is not None:
            return kind
    left_ops, right_ops = _summed(alignment.left, operand.left), _summed(alignment.right, operand.right)
    near = _near(alignment, operand)
    case = Case(Region(*operand.values, left_ops=left_ops, right_ops=right_ops, agreed=near))
    if (kind := _scaled(alignment, event, operand, case)) is not None:
        return kind
    found = (
        missing_residual(case)
        or missing_step(alignment, event, MOVING)
        or permuted_heads(case)
        or _heads_inside(case)
        or transposed(case)
    )
    return found or norm_place_of(alignment, event, operand.left, operand.right) or _swapped(alignment, operand)


def _scaled(alignment: Alignment, event: Event, operand: Operand, case: Case) -> Kind | None:
    """Tests whether the right op reads what the left one reads times a number, and gives the left result without it."""
    left, right, match = alignment.left, alignment.right, event.match
    if match is None or (found := factor_of(case)) is None:
        return None
    rest: float | None = found.rest
    if right.execution.recompute is not None:
        without = operand.values[0].reshape(right.results[operand.right].shape)
        rest = explained(alignment, match, {operand.right: without})
    names = right.results[operand.right].name, left.results[operand.left].name
    message = f"The right one's {names[0]} is {found.text} times the left one's {names[1]}{found.reading}."
    return None if rest is None else Kind("scale", message, rest)


def _operand(alignment: Alignment, event: Event) -> Operand | None:
    """Returns the one operand in which the ops of a pair differ; null if there is none, or if there are several."""
    left, right = alignment.left, alignment.right
    assert event.match is not None
    ends = computing(left, event.match.left), computing(right, event.match.right)
    does = left.does[ends[0]], right.does[ends[1]]
    if does[0] != does[1] and not (does[0] in SQUARES and does[1] in SQUARES):
        return None
    first, second = (
        list(dict.fromkeys(side.results[end].sources)) for side, end in zip((left, right), ends, strict=True)
    )
    if len(first) != len(second) or (does[0] != does[1] and len(first) != 1):
        return None
    found = []
    for mine, other in zip(first, second, strict=True):
        values = _of_one_shape(left.value(mine), right.value(other))
        if values is None:
            return None
        if relative_error(*values) > OTHER * alignment.tolerance:
            found.append(Operand(mine, other, values))
    return found[0] if len(found) == 1 else None


def _of_one_shape(first: Array | None, second: Array | None) -> tuple[Array, Array] | None:
    """Returns both values in the shape of more axes; null where they are more than rows, the same in a block."""
    if first is None or second is None or not first.ndim or not second.ndim or first.size != second.size:
        return None
    if first.shape == second.shape:
        return first, second
    if first.shape[-1] != second.shape[-1] or min(first.ndim, second.ndim) > 2:
        return None
    shape = max(first.shape, second.shape, key=len)
    return first.reshape(shape), second.reshape(shape)


def _with_heads(first: Array, second: Array) -> Iterator[tuple[Array, Array]]:
    """Yields both values, and with an axis of heads that batch and heads have become one of."""
    yield first, second
    if first.ndim == 3:
        for batch in divisors(first.shape[0])[1:-1]:
            shape = (batch, first.shape[0] // batch, *first.shape[1:])
            yield first.reshape(shape), second.reshape(shape)


def _heads_inside(case: Case) -> Kind | None:
    """Tests whether the last axis has channels with heads inside, and on the other side heads with channels."""
    *lead, width = case.shape
    for heads in divisors(width)[1:-1]:
        turned: Floats = case.left.reshape(*lead, heads, width // heads).swapaxes(-1, -2)
        message = (
            f"The right one reads {width // heads} channels with {heads} heads inside, the left one the heads first."
        )
        if (kind := case.told("permuted_heads", message, turned.reshape(case.shape))) is not None:
            return kind
    return None


def _summed(side: Side, number: int) -> tuple[Piece, ...]:
    """Returns what a result is the sum of, the sums between, and the result."""
    found = made_of(side, number, lambda one: side.does[one] in SUMS or side.is_passing[one])
    return tuple(Piece(side.results[one], side.execution.value(one)) for one in found)


def _near(alignment: Alignment, operand: Operand) -> dict[str, Array]:
    """Returns activations that both sides have, as large as an operand: what it is made of, then the nearest."""
    left, size = alignment.left, alignment.left.numel[operand.left]
    numbers = {match.left for match in alignment.matches.all if match.agrees and left.is_main[match.left]}
    made_of = left.results[computing(left, operand.left)].sources
    near = sorted(numbers, key=lambda one: (one not in made_of, abs(one - operand.left)))
    kept = [number for number in near if left.numel[number] == size]
    values = {left.results[one].name: left.execution.value(one) for one in kept[:MOST_TRIED]}
    return {name: value for name, value in values.items() if value is not None}


def _other_state(alignment: Alignment, operand: Operand) -> Kind | None:
    """Tests whether a parameter has the values of another one, which both sides have in its own place."""
    left, right = alignment.left, alignment.right
    mine, other = computing(left, operand.left), computing(right, operand.right)
    if left.results[mine].kind != "parameter" or right.results[other].kind != "parameter":
        return None
    partner = alignment.matches.left_of.get(other)
    if partner is None or not partner.agrees or partner.part is not None or mine in alignment.matches.right_of:
        return None
    # One that is read in two places is tied.
    if len(left.execution.readers[mine]) > 1 or len(right.execution.readers[other]) > 1:
        return None
    names = right.results[other].name, left.results[partner.left].name
    return Kind(
        "other_weights", f"The right one's parameter {names[0]} has the values of the left one's {names[1]}.", 0.0
    )


def _swapped(alignment: Alignment, operand: Operand) -> Kind | None:
    """Tests whether the ops read other ones of several projections of the same, all of which both sides have."""
    left, right, matches = alignment.left, alignment.right, alignment.matches
    theirs, ours = matches.right_of.get(operand.left), matches.left_of.get(operand.right)
    if theirs is None or ours is None or not theirs.agrees or not ours.agrees or ours.left == operand.left:
        return None
    made = [_projected(left, number) for number in (operand.left, ours.left)]
    if made[0] is None or made[0] != made[1]:
        return None
    names = right.results[operand.right].name, left.results[operand.left].name, left.results[ours.left].name
    message = (
        f"The right one reads {names[0]}, which is {names[2]} of the left side, where the left one reads {names[1]}."
    )
    return Kind("swapped_operands", message, 0.0)


def _projected(side: Side, number: int) -> int | None:
    """Returns the activation of which a result is a linear function of its own weight, or a slice of one."""
    while (side.is_passing[number] or side.does[number] in SLICING) and side.results[number].sources:
        number = side.results[number].sources[0]
    read = [source for source in side.results[number].sources if side.is_main[source]]
    if side.does[number] not in ("matmul", "linear") or len(read) != 1:
        return None
    return computing(side, read[0])


def _neighbors(alignment: Alignment, event: Event) -> Kind | None:
    """Tests whether one side takes halves of each head, the other one every second channel, as rotary embeddings do."""
    left, right, match = alignment.left, alignment.right, event.match
    assert match is not None
    takes = [_taken(side, number) for side, number in ((left, match.left), (right, match.right))]
    if None in takes or takes[0] == takes[1]:
        return None
    sources = left.results[match.left].sources[0], right.results[match.right].sources[0]
    known = alignment.matches.left_of.get(sources[1])
    if known is None or not known.agrees or left.numel[sources[0]] != left.numel[known.left]:
        return None
    message = f"The left one turns {takes[0]} of each head with each other, the right one {takes[1]}."
    return Kind("rotary_layout", message, 0.0)


def _taken(side: Side, number: int) -> str | None:
    """Returns which channels of heads a slice takes: the two halves, or neighbors; null if it is no such slice."""
    if side.does[number] != "slice" or not side.is_main[number]:
        return None
    whole, part = side.execution.value(side.results[number].sources[0]), side.execution.value(number)
    if whole is None or part is None or whole.ndim != 4 or part.ndim != 4 or whole.shape[-1] != 2 * part.shape[-1]:
        return None
    half = part.shape[-1]
    if half < 2 or whole.shape[:-1] != part.shape[:-1]:
        return None
    if any(np.array_equal(part, one) for one in (whole[..., :half], whole[..., half:])):
        return "the two halves"
    return "neighbors" if any(np.array_equal(part, whole[..., start::2]) for start in (0, 1)) else None
