"""Tells results that rounding keeps apart from such as are other values: one is near a run in float64, one is not."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.operators.stable.bits import Kept
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.replay.reference import Reference
from nbkit.numerics.precision import Precision, precision_of

# Distances of less are not looked into: relative to an element, and in ULP.
LEAST_RELATIVE, LEAST_ULP = 1e-2, 64
# Rounding is allowed so much more than one rounding of each input and result makes; a half adds up few roundings.
ALLOWED, ALLOWED_OF_HALF = 1000.0, 30.0
DRAWS = 4


class Judge:
    """Judges other results of one call, whose inputs lie in `arguments`; runs the reference once, when it is asked."""

    def __init__(self, traits: OpTraits, arguments: tuple[Any, dict[str, Any]]) -> None:
        self.traits, self.arguments = traits, arguments
        self.known: list[tuple[Tensor, Tensor]] | None = None

    def are_apart(
        self, others: Sequence[Tensor], expected: Sequence[Kept], places: Sequence[int] | None = None
    ) -> bool:
        """Returns whether results are further apart than rounding explains.

        `places` are the numbers of the results among all of the call. Only where one side is what a run in float64
        gives, and the other is not, the difference is sure: sums that cancel are noise on both. Which of them is right
        is open: the reference may take the same way as a wrong kernel.
        """
        for number, (other, kept) in enumerate(zip(others, expected, strict=True)):
            precision = precision_of(str(other.dtype).removeprefix("torch."))
            distance = kept.distance(other)
            if precision is None or distance is None:
                continue
            if not distance.max_ulp < max(LEAST_RELATIVE / precision.eps, LEAST_ULP):
                place = number if places is None else places[number]
                if self._is_one_wrong(other, kept.tensor, place, precision):
                    return True
        return False

    def _is_one_wrong(self, other: Tensor, own: Tensor, place: int, precision: Precision) -> bool:
        try:
            reference, spread = self._references(precision)[place]
        except Exception:  # the reference has no kernel, or takes these inputs for wrong ones
            return False
        if other.dim():  # of another batch, which may be a part
            reference, spread = reference[: len(other)], spread[: len(other)]
        if reference.shape != other.shape:
            return False
        factor = ALLOWED if precision.eps < LEAST_RELATIVE**2 else ALLOWED_OF_HALF
        allowed = factor * (precision.eps * reference.abs() + spread + precision.spacing)
        return _is_off(other, reference, allowed) != _is_off(own, reference, allowed)

    def _references(self, precision: Precision) -> list[tuple[Tensor, Tensor]]:
        if self.known is None:
            call = Reference("cpu:float64").copy(self.traits, *self.arguments)
            spreads = call.conditioning(DRAWS, precision.eps)
            self.known = [(one.cpu(), spread) for one, spread in zip(call.results().all, spreads, strict=True)]
        return self.known


def _is_off(result: Tensor, reference: Tensor, allowed: Tensor) -> bool:
    """Returns whether an element is no number where the reference is one that the dtype holds, or is far from it."""
    wanted = reference.to(result.dtype).to(reference.dtype)
    actual = result.cpu().to(reference.dtype)
    both = actual.isfinite() & wanted.isfinite()
    same = (actual == wanted) | (actual.isnan() & wanted.isnan())
    return bool((~torch.where(both, (actual - reference).abs() <= allowed, same)).any())
