"""Tests whether angles of rotary embeddings are those of another base: frequencies, tables, turned values."""

from collections.abc import Callable, Iterator

import numpy as np

from nbkit.analysis.align.kinds.case import Case, Floats, norm, number_text
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.kinds.rotary.turns import Complexes, Turn, fitted, turned, turns
from nbkit.analysis.align.region import Kind

NAME = "rotary_base"
BASES = (1e4, 1e5, 1.5e5, 5e5, 1e6, 5e6, 1e7, 1e8, 1e3, 2.5e5, 2e6, 1e2)
# A table's first rows are fitted, in which slow angles have not come round.
FIRST = 64
# A smaller frequency is not told from what rounding leaves of it.
SLOW = 1e-3
Table = Callable[[Floats], Floats]


@kind_test(NAME, 60, lambda case: case.is_comparable and max(case.shape[-1:], default=0) > 1)
def rotary_base(case: Case) -> Kinds:
    """Tests inverse frequencies, angles, cosines and sines, then a known value turned by angles of two bases."""
    if max(case.shape) == case.left.size:
        yield _powers(case, case.left.size, 1)
        yield _powers(case, case.left.size, -1)
    yield from _tables(case)
    yield from (_turned(case, turn) for turn in turns(case))


def frequencies(base: float, count: int) -> Floats:
    """Returns base^(-2i/d) of the pairs i of d = 2 count elements."""
    return np.asarray(base ** (-np.arange(count) / count))


def base_of(inverse: Floats) -> float | None:
    """Returns the base of frequencies, which fall from 1 in equal steps of their logarithm; null if they do not."""
    if len(inverse) < 2 or not np.isfinite(inverse).all() or abs(inverse[0] - 1) > 0.05:
        return None
    known = inverse > SLOW
    known[0] = False
    if not known.any():
        return None
    steps, inverse = (np.arange(len(inverse)) / len(inverse))[known], inverse[known]
    weights = inverse**2 * steps
    base = float(np.exp(-(weights * np.log(inverse)).sum() / (weights * steps).sum()))
    return base if 2 <= base <= 1e12 else None


def _message(left: float, right: float) -> str:
    return f"The rotary base is {number_text(left)} on the left, {number_text(right)} on the right."


def _near(base: float) -> Iterator[float]:
    """Yields usual bases near to one that was solved, then short numbers near it, then itself."""
    yield from (one for one in BASES if abs(np.log(base / one)) < 0.3)
    yield from (float(f"{base:.{digits}g}") for digits in (1, 2, 3, 4, 5))
    yield base


def _best(base: float | None, error: Callable[[float], float], allowed: float) -> float | None:
    """Returns the base near a solved one whose values leave least, of about equal ones the shortest number."""
    if base is None:
        return None
    errors = [(error(one), one) for one in _near(base)]
    least = min(errors)[0]
    if not least <= allowed:
        return None
    return next(one for rest, one in errors if rest <= max(3 * least, 0.02 * allowed))


def _powers(case: Case, count: int, sign: int) -> Kind | None:
    """Tests frequencies, or one over them, which some models make first."""

    def solved(side: Floats) -> float | None:
        def error(base: float) -> float:
            return norm(frequencies(base, count) ** sign - side)

        return _best(base_of(side**sign), error, case.limit * case.distance / 2)

    first, second = solved(case.left.reshape(-1)), solved(case.right.reshape(-1))
    if first is None or second is None or first == second:
        return None
    left, right = (frequencies(one, count) ** sign for one in (first, second))
    if norm(left - case.left) > case.limit * case.distance:
        return None
    return case.told(NAME, _message(first, second), right)


def _tables(case: Case) -> Iterator[Kind]:
    """Tests tables of angles, cosines or sines [..., position, pair or element], positions from 0."""
    if len(case.shape) < 2:
        return
    for left, right in ((case.left, case.right), (case.left.swapaxes(-1, -2), case.right.swapaxes(-1, -2))):
        rows, width = left.shape[-2:]
        if rows < 2 or width < 2:
            continue
        first, second = left.reshape(-1, rows, width), right.reshape(-1, rows, width)
        if norm(first - first[:1]) > 1e-3 * norm(first) or norm(second - second[:1]) > 1e-3 * norm(second):
            continue
        for function, inverse in FUNCTIONS:
            for layout in ("halves", "doubled", "once"):
                found = [_table_base(side[0], function, inverse, layout, case) for side in (first, second)]
                if found[0] is None or found[1] is None or found[0] == found[1]:
                    continue
                rest = norm(_table(function, found[1], rows, width, layout) - second[0])
                yield Kind(NAME, _message(found[0], found[1]), rest / norm(second[0] - first[0]))


FUNCTIONS: tuple[tuple[Table, Table], ...] = (
    (np.cos, lambda x: np.arccos(np.clip(x, -1, 1))),
    (np.sin, lambda x: np.arcsin(np.clip(x, -1, 1))),
    (lambda x: x, lambda x: x),
)


def _table(function: Table, base: float, rows: int, width: int, layout: str) -> Floats:
    inverse = frequencies(base, width if layout == "once" else width // 2)
    if layout != "once":
        inverse = np.tile(inverse, 2) if layout == "halves" else np.repeat(inverse, 2)
    return function(np.arange(rows)[:, None] * inverse)


def _table_base(side: Floats, function: Table, inverse: Table, layout: str, case: Case) -> float | None:
    rows, width = side.shape
    if layout != "once" and width % 2:
        return None
    if norm(side[0] - function(np.zeros(width))) > 0.01 * width**0.5:
        return None
    angles = inverse(side[1])
    angles = {"once": angles, "halves": angles[: width // 2], "doubled": angles[0::2]}[layout]
    allowed = case.limit * case.distance / (case.left.size / side.size) ** 0.5 / 2
    solved = base_of(np.maximum(angles, 1e-12))
    return _best(solved, lambda one: norm(_table(function, one, rows, width, layout) - side), allowed)


def step_frequencies(steps: Complexes) -> Floats:
    """Returns by how much the angle of each pair grows from one position to the next."""
    return np.asarray(np.angle((steps[1:] * steps[:-1].conj()).sum(0)))


def powers(inverse: Floats, steps: Complexes) -> Complexes:
    """Returns the steps of positions in a row whose first one is that of the given steps."""
    start = np.angle(steps[0])
    fast = int(np.argmax(inverse < 2)) if (inverse < 2).any() else 0
    first = round(float(start[-1] / inverse[-1])) if inverse[-1] > 0 else 0
    if abs(first) * inverse[fast] < np.pi:
        first = round(float(start[fast] / inverse[fast]))
    return np.asarray(np.exp(1j * (first + np.arange(len(steps)))[:, None] * inverse))


def _turned(case: Case, turn: Turn) -> Kind | None:
    steps = fitted(turn.x, turn.right, turn.layout, turn.width, turn.axis, case.limit)
    distance = norm(turn.right - turn.left)
    if steps is None or len(steps) < 2 or distance == 0:
        return None
    found = []
    for each, side in ((turn.steps, turn.left), (steps, turn.right)):

        def error(base: float, each: Complexes = each, side: Floats = side) -> float:
            made = powers(frequencies(base, turn.width // 2), each)
            return norm(turned(turn.x, made, turn.layout, turn.axis) - side)

        found.append(_best(base_of(step_frequencies(each)), error, case.limit * distance / 2))
    if found[0] is None or found[1] is None or found[0] == found[1]:
        return None
    made = powers(frequencies(found[1], turn.width // 2), steps)
    explained = case.rest(turned(turn.x, made, turn.layout, turn.axis), turn.right, turn.left)
    return Kind(NAME, _message(found[0], found[1]), explained)
