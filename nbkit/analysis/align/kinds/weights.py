"""Tests kinds of parameters alone: one that is no longer tied to another, and one that simply has other values."""

import numpy as np

from nbkit.analysis.align.kinds.case import Case, Known, floats, is_close, norm
from nbkit.analysis.align.region import Kind

# So few elements are listed; up to this share of all is few.
LISTED, FEW = 4, 0.01
# A tied parameter is a copy; it may have been saved and read once more.
SAME = 1e-5


def untied_weight(case: Case) -> Kind | None:
    """Tests whether one side's parameter equals another one, as a tied one does, and the other side's does not."""
    if case.region.kind != "parameter" or not case.is_same_shape or not case.is_clear:
        return None
    left, right = ([one for one in case.known if is_equal(case, one, side)] for side in ("left", "right"))
    if bool(left) == bool(right):
        return None
    tied, other = ("left", "right") if left else ("right", "left")
    message = f"The {tied} one equals {(left + right)[0].name}, as a parameter tied to it; the {other} one does not."
    return Kind("untied_weight", message, 0.0)


def is_equal(case: Case, one: Known, side: str) -> bool:
    """Returns whether a side's parameter is a known one."""
    values = case.left if side == "left" else case.right
    if one.value.shape != values.shape or one.value.ndim < 2 or not is_close(one.value, values):
        return False
    return norm(values - floats(one.value)) <= max(4 * case.eps, SAME) * norm(values)


def other_weights(case: Case) -> Kind | None:
    """Tests whether a parameter has other values; says how many, which if few, and the correlation.

    It is named after all other kinds, and explains the difference by definition.
    """
    if case.region.kind not in ("parameter", "buffer") or not case.is_same_shape or not case.is_finite:
        return None
    error = np.abs(case.right - case.left)
    level = case.size / max(case.left.size, 1) ** 0.5
    is_other = error > 4 * case.eps * (np.abs(case.left) + level)
    count, size = int(is_other.sum()), case.left.size
    if not count or (not case.is_clear and count > LISTED):
        return None
    if count <= LISTED and count <= max(FEW * size, 1):
        where = " and ".join(f"[{', '.join(map(str, place))}]" for place in np.argwhere(is_other).tolist())
        elements = "1 element" if count == 1 else f"{count} elements"
        message = f"The parameter has another value in {elements} of {size:,}, at {where}."
    else:
        correlation = _correlation(case)
        what = "the two are unrelated" if abs(correlation) < 0.1 else f"their correlation is {correlation:.4g}"
        message = f"The parameter has other values in {count:,} of {size:,} elements; {what}."
    return Kind("other_weights", message, 0.0)


def _correlation(case: Case) -> float:
    left, right = case.left - case.left.mean(), case.right - case.right.mean()
    return float(np.vdot(left, right)) / max(norm(left) * norm(right), 1e-300)
