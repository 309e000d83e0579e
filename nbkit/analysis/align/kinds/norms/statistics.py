"""Tests whether a batch norm takes the statistics of the batch on one side, and its running ones on the other."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from nbkit.analysis.align.kinds.case import Case, Floats, floats, norm
from nbkit.analysis.align.kinds.norms.recorded import recorded_epsilon
from nbkit.analysis.align.kinds.registry import Kinds, kind_test

USUAL = 1e-5
NEAR = 1e-3
# Scale, shift, mean and variance, and few others.
MOST_VECTORS, FEWEST = 6, 2
MESSAGES = {
    True: "The batch norm takes the statistics of the batch on the left, as in training, and its running ones on the "
    "right, as torch.onnx.export writes it in any mode.",
    False: "The batch norm takes its running statistics on the left, and those of the batch on the right, as in "
    "training.",
}


@kind_test("batch_statistics", 45, lambda case: case.is_comparable and not case.is_weight and len(case.shape) > 1)
def batch_statistics(case: Case) -> Kinds:
    """Tests both forms of a norm over all axes but the second, by vectors along it that both sides have."""
    known = [floats(one.value) for one in case.known if one.value.shape == case.shape[1:2]][:MOST_VECTORS]
    if len(known) < FEWEST:
        return
    told = [epsilon.value for side in case.sides if (epsilon := recorded_epsilon(side)) is not None]
    inputs = [floats(one.value) for one in case.known if one.value.shape == case.shape]
    for is_left, normed in ((True, case.left), (False, case.right)):
        for x in inputs:
            for batch, running in _forms(x, normed, known, told[0] if told else USUAL):
                first, second = (batch, running) if is_left else (running, batch)
                if norm(first - case.left) <= case.limit * case.distance:
                    yield case.told("batch_statistics", MESSAGES[is_left], second)


def _forms(x: Floats, normed: Floats, known: list[Floats], epsilon: float) -> Iterator[tuple[Floats, Floats]]:
    """Yields an input normed by its own statistics as `normed` is, if it is so, and by each two known vectors."""
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    form = (1, -1, *[1] * (x.ndim - 2))
    mean, variance = x.mean(axes), x.var(axes)
    # Its mean is the shift, and its deviation the scale, as far as the epsilon is small.
    width = normed.std(axes) / np.sqrt(variance / (variance + epsilon))
    scales = [one for one in (np.ones_like(mean), *known) if _is_near(np.abs(one), width)]
    shifts = [one for one in (np.zeros_like(mean), *known) if _is_near(one, normed.mean(axes), width)]
    for scale in scales[:1]:
        for shift in shifts[:1]:

            def made(of: Floats, square: Floats, scale: Floats = scale, shift: Floats = shift) -> Floats:
                factor = scale / np.sqrt(square + epsilon)
                return x * factor.reshape(form) + (shift - of * factor).reshape(form)

            for other, square in permutations((one for one in known if one is not scale and one is not shift), 2):
                if (square >= 0).all():
                    yield made(mean, variance), made(other, square)


def _is_near(one: Floats, other: Floats, size: Floats | None = None) -> bool:
    return norm(one - other) <= NEAR * norm(other if size is None else size)
