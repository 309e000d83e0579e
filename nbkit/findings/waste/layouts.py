"""Finds lines that bring activations of a channels_last model back to NCHW, so that convolutions convert them again."""

from collections import defaultdict

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.step import Ints
from nbkit.findings.waste.step import RecordedStep
from nbkit.ops.families import CONVOLUTIONS
from nbkit.step.decode import sizes_of

OTHER, CHANNELS_LAST, NCHW = 0, 1, 2
# The dimensions from the innermost to the outermost.
ORDERS = {CHANNELS_LAST: (1, 3, 2, 0), NCHW: (3, 2, 1, 0)}
FEWEST = 2
MOST_STEPS = 32
ADVICE = (
    "Keep one layout: write this block without contiguous(), and without a view() that needs it, or give it "
    "memory_format=torch.channels_last; else run the whole model in NCHW."
)


@rule("hint", rank=30)
def layout_conversions(step: RecordedStep) -> list[Finding]:
    """A line brings activations of a channels_last model back to NCHW, and 2 convolutions or more convert them to
    channels_last again.
    """
    convolutions = np.flatnonzero(step.named(*CONVOLUTIONS) & step.in_module)
    if len(convolutions) < FEWEST:
        return []
    layout = _layouts(step.tensors)
    before, after = step.tensor_rows(convolutions, "input"), step.tensor_rows(convolutions, "output")
    rows = convolutions[(before[convolutions] >= 0) & (after[convolutions] >= 0)]
    converting = rows[(layout[before[rows]] == NCHW) & (layout[after[rows]] == CHANNELS_LAST)]
    if len(converting) < FEWEST:
        return []
    back = _Back(step, layout)
    lines: dict[str, list[tuple[int, int]]] = defaultdict(list)  # (op that brings NCHW, convolution) by source
    for row in converting.tolist():
        culprit = back.culprit(int(before[row]))
        if culprit is not None:
            lines[str(step.ops["source"].iloc[culprit])].append((culprit, row))
    return [
        _finding(step, np.unique([culprit for culprit, _ in pairs]), before[[row for _, row in pairs]])
        for pairs in lines.values()
        if len(pairs) >= FEWEST
    ]


def _finding(step: RecordedStep, culprits: Ints, converted: Ints) -> Finding:
    made = step.tensor_rows(culprits, "output")[culprits]
    message = (
        f"This line brings activations of a channels_last model back to NCHW, {len(culprits):,} times in all, and the "
        f"convolutions behind it convert them to channels_last again, {len(converted):,} times"
    )
    moved = int(step.sizes[made].sum() + step.sizes[converted].sum())
    finding = layout_conversions.finding(
        message,
        ADVICE,
        effect_bytes=moved,
        evidence={"convolutions": np.unique(step.op_ids[converted]).tolist()},
    )
    return step.finding(finding, culprits)


class _Back:
    """Follows a tensor back to the op that took its layout."""

    def __init__(self, step: RecordedStep, layout: Ints) -> None:
        self.step, self.layout = step, layout

    def culprit(self, row: int) -> int | None:
        """Returns the first op after a channels_last tensor that made memory of another layout; null if none."""
        op_of, storage = self.step.op_ids, self.step.memory
        culprit = None
        for _ in range(MOST_STEPS):
            result = int(self.step.makers[row])
            inputs = [] if result < 0 else self._inputs(int(op_of[result]))
            if not inputs or not self.step.in_module[op_of[result]]:
                return None
            last = [one for one in inputs if self.layout[one] == CHANNELS_LAST]
            source = last[0] if last else inputs[0]
            if storage[source] != storage[result]:
                culprit = int(op_of[result])
            if last:
                return culprit
            row = source
        return None

    def _inputs(self, op: int) -> list[int]:
        return [row for row in self.step.rows(op).tolist() if not self.step.is_output[row]]


def _layouts(tensors: pd.DataFrame) -> Ints:
    """Returns the layout of each tensor row; OTHER of those that have no four dimensions, or could be of both."""
    shape_codes, shapes = pd.factorize(tensors["shape"])
    stride_codes, strides = pd.factorize(tensors["stride"])
    pairs, inverse = np.unique(shape_codes * (len(strides) + 1) + stride_codes + 1, return_inverse=True)
    kinds = [
        _layout(str(shapes[pair // (len(strides) + 1)]), pair % (len(strides) + 1) - 1, strides)
        for pair in pairs.tolist()
    ]
    return np.asarray(np.array(kinds, dtype=np.int64)[inverse.reshape(-1)])


def _layout(shape: str, stride: int, strides: pd.Index) -> int:
    if stride < 0 or shape.count(",") != 3:
        return OTHER
    sizes, steps = sizes_of(shape), sizes_of(str(strides[stride]))
    if min(sizes) < 1:
        return OTHER
    fitting = [kind for kind, order in ORDERS.items() if _is_dense(sizes, steps, order)]
    return fitting[0] if len(fitting) == 1 else OTHER


def _is_dense(sizes: tuple[int, ...], steps: tuple[int, ...], order: tuple[int, ...]) -> bool:
    expected = 1
    for dim in order:
        if sizes[dim] > 1 and steps[dim] != expected:
            return False
        expected *= sizes[dim]
    return True
