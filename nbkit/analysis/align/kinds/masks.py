"""Tests kinds of attention masks on the masks themselves, on scores and on probabilities: shifted, inverted."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import MASKED, Case, Floats, floats, norm, shifts
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind

Bools = npt.NDArray[np.bool_]
MOST_SHIFT = 16
# What may stand elsewhere than a shifted or inverted mask has it, as a share of what differs.
STRAY = 0.01


@dataclass(frozen=True)
class Masks:
    """Holds which elements both sides mask; `form` is what the pair is; `rows` are those that can be told."""

    form: str  # "flags", "scores" or "probabilities"
    left: Bools
    right: Bools
    rows: Bools


def masks_of(case: Case) -> list[Masks]:
    """Returns what the two sides mask; nothing where the pair masks nothing, or both the same."""
    return case.once("masks", lambda: list(_masks(case)))


def _masks(case: Case) -> Iterator[Masks]:
    if case.is_same_shape and len(case.shape) > 1 and case.left.size >= 4:
        left, right = floats(case.region.left), floats(case.region.right)
        found = _flags(left, right) or _scores(left, right) or _probabilities(left, right)
        if found is not None and (found.left != found.right)[found.rows].any():
            yield found


@kind_test("mask_shifted", 10, masks_of)
def mask_shifted(case: Case) -> Kinds:
    """Tests whether the right one masks what the left one does, some positions further along the row."""
    (masks,), width = masks_of(case), case.shape[-1]
    if not _has_both(masks.left) or not _agree(case, masks):
        return
    for shift in shifts(min(MOST_SHIFT, width // 2)):
        right = masks.right[..., max(shift, 0) : width + min(shift, 0)]
        left = masks.left[..., max(-shift, 0) : width + min(-shift, 0)]
        explained = _stray(left, right, masks)
        if explained > STRAY or not _has_both(right[masks.rows]):
            continue
        message = f"The right one's mask is the left one's, shifted by {shift} along the diagonal{_seen(masks)}."
        yield Kind("mask_shifted", message, explained)


@kind_test("mask_inverted", 20, masks_of)
def mask_inverted(case: Case) -> Kinds:
    """Tests whether the right one masks what the left one does not, and the reverse."""
    (masks,) = masks_of(case)
    explained = _stray(~masks.left, masks.right, masks)
    if explained <= STRAY and _has_both(masks.left):
        yield Kind("mask_inverted", "The right one masks what the left one does not, and the reverse.", explained)


@kind_test("missing_mask", 30, masks_of)
def missing_mask(case: Case) -> Kinds:
    """Tests whether one side masks nothing of what the other one masks."""
    (masks,) = masks_of(case)
    if masks.form == "flags" or not _agree(case, masks):
        return
    both = (masks.left, masks.right), (masks.right, masks.left)
    for side, (mine, beside) in zip(case.sides, both, strict=True):
        if mine.any() and not beside[masks.rows].any():
            message = f"The {side.other} one masks nothing of what the {side.name} one masks, as if it had no mask."
            yield Kind("missing_mask", message, 0.0)


def _flags(left: Floats, right: Floats) -> Masks | None:
    if not all(((rows == 0) | (rows == 1)).all() for one in (left, right) for rows in (one[..., :1, :], one)):
        return None
    if _is_probability(left).all() and _is_probability(right).all() and left.shape[-1] > 1:
        return None  # one-hot rows may be probabilities
    return Masks("flags", left == 1, right == 1, np.ones(left.shape[:-1], dtype=bool))


def _scores(left: Floats, right: Floats) -> Masks | None:
    is_left, is_right = left <= MASKED, right <= MASKED
    if not is_left.any() and not is_right.any():
        return None
    # Ordinary values may be that large; masked ones lie far from the others.
    rest = np.abs(np.concatenate([left[~is_left], right[~is_right]]))
    rest = rest[np.isfinite(rest)]
    if len(rest) and float(np.quantile(rest, 0.99)) > -MASKED / 10:
        return None
    return Masks("scores", is_left, is_right, np.ones(left.shape[:-1], dtype=bool))


def _probabilities(left: Floats, right: Floats) -> Masks | None:
    if not (left.min(initial=0.0) >= 0 or np.isnan(left).any()):
        return None
    good = _is_probability(left), _is_probability(right)
    odd = np.isnan(left).all(-1), np.isnan(right).all(-1)
    if not all((one | bad).all() and one.any() for one, bad in zip(good, odd, strict=True)):
        return None
    is_left, is_right = left == 0, right == 0
    # A row that is masked as a whole is uniform, or NaN.
    rows = good[0] & good[1] & ~_is_uniform(left) & ~_is_uniform(right)
    return Masks("probabilities", is_left, is_right, rows) if rows.any() else None


def _is_probability(values: Floats) -> Bools:
    with np.errstate(invalid="ignore"):
        is_in = ((values >= 0) & (values <= 1 + 1e-2)).all(-1)
        return np.asarray(is_in & (np.abs(values.sum(-1) - 1) < 2e-2))


def _is_uniform(values: Floats) -> Bools:
    return np.asarray((np.ptp(values, axis=-1) <= 1e-2 * values.max(-1)) & (values.shape[-1] > 1))


def _stray(left: Bools, right: Bools, masks: Masks) -> float:
    """Returns the share of the differing elements that stand elsewhere than they should.

    Rows that would be masked wholly are often left to see something, and do not count.
    """
    rows = masks.rows & ~left.all(-1) if masks.form != "flags" else masks.rows
    count = int((masks.left != masks.right)[rows].sum())
    return float((left != right)[rows].sum()) / count if count else np.inf


def _has_both(pattern: Bools) -> bool:
    return bool(pattern.any() and not pattern.all())


def _agree(case: Case, masks: Masks) -> bool:
    """Returns whether what both see is the same; of probabilities, after each row has been scaled to sum to 1."""
    if masks.form == "flags":
        return True
    both = ~masks.left & ~masks.right & masks.rows[..., None]
    left, right = (np.where(both, floats(one), 0.0) for one in (case.region.left, case.region.right))
    if masks.form == "probabilities":
        left, right = (one / np.maximum(one.sum(-1, keepdims=True), 1e-300) for one in (left, right))
    near = max(0.01, 4 * case.eps) * max(norm(left), 1e-300)
    return bool(np.isfinite(near)) and norm(right - left) <= near and case.holds(right, left)


def _seen(masks: Masks) -> str:
    if masks.form == "flags":
        return ""
    more = int(masks.left[masks.rows].sum()) - int(masks.right[masks.rows].sum())
    return f": its rows see {'more' if more > 0 else 'fewer'} positions" if more else ""
