"""Tests kinds of parameters alone: one that is no longer tied to another, and one that simply has other values."""

import numpy as np

from nbkit.analysis.align.kinds.case import Case, CaseSide, Known, floats, is_close, norm
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind

# So few elements are listed; up to this share of all is few.
LISTED, FEW = 4, 0.01
# A tied parameter is a copy; it may have been saved and read once more.
SAME = 1e-5


@kind_test("untied_weight", 170, lambda case: case.region.kind == "parameter" and case.is_same_shape and case.is_clear)
def untied_weight(case: Case) -> Kinds:
    """Tests whether one side's parameter equals another one, as a tied one does, and the other side's does not."""
    equals = [(side, equal[0].name) for side in case.sides if (equal := equal_ones(case, side))]
    if len(equals) == 1:
        (tied, name), *_ = equals
        message = f"The {tied.name} one equals {name}, as a parameter tied to it; the {tied.other} one does not."
        yield Kind("untied_weight", message, 0.0)


def equal_ones(case: Case, side: CaseSide) -> list[Known]:
    """Returns the known parameters that a side's is."""
    values, tolerance = side.values, max(4 * case.eps, SAME)
    alike = (one for one in case.known if one.value.ndim >= 2 and is_close(one.value, values))
    return [one for one in alike if norm(values - floats(one.value)) <= tolerance * norm(values)]


@kind_test("other_weights", 180, lambda case: case.is_state and case.is_same_shape and case.is_finite)
def other_weights(case: Case) -> Kinds:
    """Tests whether a parameter has other values; says how many, which if few, and the correlation.

    It is named after all other kinds, and explains the difference by definition.
    """
    error = np.abs(case.right - case.left)
    level = case.size / max(case.left.size, 1) ** 0.5
    is_other = error > 4 * case.eps * (np.abs(case.left) + level)
    count, size = int(is_other.sum()), case.left.size
    if not count or (not case.is_clear and count > LISTED):
        return
    if count <= LISTED and count <= max(FEW * size, 1):
        where = " and ".join(f"[{', '.join(map(str, place))}]" for place in np.argwhere(is_other).tolist())
        elements = "1 element" if count == 1 else f"{count} elements"
        message = f"The parameter has another value in {elements} of {size:,}, at {where}."
    else:
        correlation = _correlation(case)
        what = "the two are unrelated" if abs(correlation) < 0.1 else f"their correlation is {correlation:.4g}"
        message = f"The parameter has other values in {count:,} of {size:,} elements; {what}."
    yield Kind("other_weights", message, 0.0)


def _correlation(case: Case) -> float:
    left, right = case.left - case.left.mean(), case.right - case.right.mean()
    return float(np.vdot(left, right)) / max(norm(left) * norm(right), 1e-300)
