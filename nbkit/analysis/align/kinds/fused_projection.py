"""Tests whether queries, keys and values are cut from one fused projection in two ways: as thirds, or head by head."""

from collections.abc import Iterator

from nbkit.analysis.align.kinds.case import Case, CaseSide, Floats, divisors, floats, is_close
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind

NAME = "fused_order"
PARTS, MOST_HEADS = 3, 128


@kind_test(NAME, 115, lambda case: case.is_finite and not case.is_weight)
def fused_order(case: Case) -> Kinds:
    """Tests whether both sides cut parts from a known value, each in ways in which the other one cuts none."""
    whole = [one for one in case.known if one.value.ndim > 1 and one.value.shape[-1] % PARTS == 0 and not one.is_inner]
    for fused in sorted(whole, key=lambda one: -one.value.shape[-1]):
        left, right = (_ways(floats(fused.value), side) for side in case.sides)
        if left and right and not left & right:
            message = (
                f"The left one cuts queries, keys and values from {fused.name} as {min(left)}, the right one as "
                f"{min(right)}."
            )
            yield Kind(NAME, message, 0.0)


def _ways(fused: Floats, side: CaseSide) -> set[str]:
    """Returns in which ways the values of a side are cut from the last axis of a fused one."""
    values = [floats(value) for _, value in side.inner if value.size * PARTS == fused.size] + [side.values]
    return {how for value in values if (how := _way(fused, value)) is not None}


def _way(fused: Floats, value: Floats) -> str | None:
    """Returns the way in which a value is a third of the fused one; null if in none that is known."""
    if value.size * PARTS != fused.size:
        return None
    for how, cut in _cuts(fused):
        if any(is_close(form.reshape(value.shape), value) for form in (cut, cut.swapaxes(-3, -2))):
            return how
    return None


def _cuts(fused: Floats) -> Iterator[tuple[str, Floats]]:
    """Yields each third as (..., positions, heads, size), the simplest way first."""
    *lead, width = fused.shape
    counts = [count for count in divisors(width // PARTS) if count <= MOST_HEADS]
    for heads in counts:
        thirds = fused.reshape(*lead, PARTS, heads, width // PARTS // heads)
        yield from (("thirds of its last axis", thirds[..., part, :, :]) for part in range(PARTS))
    for heads in counts[1:-1]:
        of_head = fused.reshape(*lead, heads, PARTS, width // PARTS // heads)
        yield from ((f"thirds of each of {heads} heads", of_head[..., part, :]) for part in range(PARTS))
    for heads in counts:
        single = fused.reshape(*lead, heads, width // PARTS // heads, PARTS)
        yield from (("every third element", single[..., part]) for part in range(PARTS))
