"""Measures the memory that a recurrent layer keeps for its backward pass, of which torch's rules of shapes have none.

How large it is depends on the library and on the CPU: oneDNN alone tells, when the layer runs.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from math import gcd
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.replay.isolated import isolated
from nbkit.units import counted

LSTM = torch.ops.aten.mkldnn_rnn_layer.default
# The place of the flag `train` among the arguments; oneDNN asks instead whether gradients are on.
KEPT = {LSTM: None, torch.ops.aten._cudnn_rnn.default: 12, torch.ops.aten.miopen_rnn.default: 10}
# A layer that takes more to measure, a second on a slow CPU, is not measured.
MOST_FLOPS, MOST_WEIGHTS = 5 * 10**10, 1 << 26
PAGE, LINE = 4096, 64  # bytes: each part begins at a page, and the rows of most at a line of a cache


class Layer(NamedTuple):
    """Holds what decides, beside the length of a sequence and the batch, how much memory a layer keeps."""

    width: int
    hidden: int
    dtype: torch.dtype
    options: tuple[Any, ...]  # the last arguments of the op

    def flops(self, rows: int) -> int:
        """Returns the FLOPs of a layer that takes so many rows."""
        return 8 * rows * self.hidden * (self.width + self.hidden)


class Workspaces:
    """Gives results of recurrent layers the memory that they keep, and counts the calls where that is not known."""

    def __init__(self) -> None:
        self.unknown: Counter[str] = Counter()

    def filled(self, func: OpOverload, args: Any, out: Any) -> Any:
        """Returns the results of a recurrent layer on shapes, with the memory that they keep for the backward pass."""
        train = KEPT[func]
        if not (torch.is_grad_enabled() if train is None else args[train]):
            return out
        size = _size_of(args) if func is LSTM and args[0].device.type == "cpu" else None
        if size is None:
            self.unknown[f"{func.namespace}.{func._opname}"] += 1
            return out
        return (*out[:3], args[0].new_empty(size, dtype=torch.uint8))

    def notes(self) -> list[str]:
        """Says of which calls the kept memory is not known."""
        return [
            f"What {name} keeps for the backward pass beside its results is not known of {counted(count, 'call')} and "
            "counts as 0: saved bytes and peak are larger."
            for name, count in self.unknown.items()
        ]


def _size_of(args: Any) -> int | None:
    x, hidden = args[0], args[10]
    length, batch, width = x.shape
    return workspace_bytes(length, batch, Layer(width, hidden, x.dtype, tuple(args[11:16])))


@cache
def workspace_bytes(length: int, batch: int, layer: Layer) -> int | None:
    """Returns the bytes that an LSTM keeps of sequences of one length; None where that takes too long to find out.

    The parts of this memory are multiples of the batch and of the length (some of one step more), each rounded up to
    whole pages. So the sum grows evenly from one length to another that is so many steps longer that no part is rounded
    otherwise, and from one batch to another in the same way. A long sequence or a large batch is told by short and
    small ones, and a call between them proves it.
    """
    # Cells, at rest and after each step, begin at no line.
    lines = PAGE // gcd(LINE, 2 * layer.hidden * layer.dtype.itemsize)
    batches, lengths = _ends(batch, lines), _ends(length, lines // gcd(lines, batch))
    points = [*product(lengths, batches)]
    is_told = points != [(length, batch)]
    proof = [(2 * lengths[-1] - lengths[0], 2 * batches[-1] - batches[0])] * is_told
    rows = sum(steps * each for steps, each in points + proof)
    weights = 4 * layer.hidden * (layer.width + layer.hidden)
    if not rows or layer.flops(rows) > MOST_FLOPS or weights > MOST_WEIGHTS:
        return None
    try:
        by_batch = [_line(lengths, [_measured(steps, each, layer) for steps in lengths]) for each in batches]
        proven = [_measured(*point, layer) for point in proof]
    except RuntimeError:  # a dtype that this CPU has no kernel for: the layer does not run either
        return None
    told = [_line(batches, [of(steps) for of in by_batch])(each) for steps, each in [*proof, (length, batch)]]
    return told[-1] if told[:-1] == proven else None


def _ends(number: int, period: int) -> tuple[int, ...]:
    """Returns the number itself, or the first two that differ from it by whole periods, where these are smaller."""
    if number <= 3 * period:
        return (number,)
    first = (number - 1) % period + 1
    return first, first + period


def _line(places: tuple[int, ...], values: list[int]) -> Callable[[int], int]:
    """Returns the line through one or two points."""
    if len(places) == 1:
        return lambda place: values[0]
    (left, right), (low, high) = places, values
    return lambda place: low + (place - left) * (high - low) // (right - left)


@cache
def _measured(length: int, batch: int, layer: Layer) -> int:
    """Returns the bytes that an LSTM keeps on this machine: it runs on zeros."""
    width, hidden, gates = layer.width, layer.hidden, 4 * layer.hidden
    shapes = ((length, batch, width), (gates, width), (gates, hidden), (gates,), (gates,), (batch, hidden))
    with isolated(), torch.inference_mode(False), torch.enable_grad():
        zeros: list[Tensor] = [torch.zeros(shape, dtype=layer.dtype) for shape in (*shapes, shapes[-1])]
        kept: Tensor = LSTM(*zeros, False, [], 2, hidden, *layer.options)[3]
        return kept.untyped_storage().nbytes()
