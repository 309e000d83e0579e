"""Regions made by plain numpy models, each with a planted fault and the words that its kind's message must have."""

from dataclasses import dataclass, replace

import numpy as np

from nbkit.analysis.align.kinds.precision.rounding import rounded
from nbkit.analysis.align.region import Piece, Region
from nbkit.trace.executions.execution import Result


@dataclass(frozen=True)
class Planted:
    """Holds a region, the kind planted in it, and words of the message."""

    kind: str
    name: str
    region: Region
    words: tuple[str, ...] = ()
    rounds: bool = True  # also found where all values are bfloat16
    also: tuple[str, ...] = ()  # more general kinds that explain it, too


def randn(*shape, seed=0, scale=1.0):
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float32)


def piece(name, value, kind="op", dtype=None):
    value = np.asarray(value)
    return Piece(Result(0, kind, name, dtype or str(value.dtype), value.shape), value)


def parameter(name, value):
    return piece(name, value, kind="parameter")


def region(left, right, inputs=(), left_only=(), right_only=(), left_ops=(), right_ops=(), **kwargs):
    """Builds a region whose two sides read the same inputs, and some that one side alone reads."""
    return Region(
        single(left),
        single(right),
        left_inputs=(*inputs, *left_only),
        right_inputs=(*inputs, *right_only),
        left_ops=(*left_ops, piece("left", left)),
        right_ops=(*right_ops, piece("right", right)),
        **kwargs,
    )


def ended(one, op):
    """Returns the region with the name of the op that gave both sides."""
    left, right = (ops[-1] for ops in (one.left_ops, one.right_ops))
    left, right = (replace(each, result=replace(each.result, op=op)) for each in (left, right))
    return replace(one, left_ops=(*one.left_ops[:-1], left), right_ops=(*one.right_ops[:-1], right))


def single(value):
    value = np.asarray(value)
    return value.astype(np.float32) if value.dtype == np.float64 else value


def noisy(one, level=1e-6, seed=5):
    """Adds noise to the right one, of a share of each element."""
    if one.right.dtype != np.float32:
        return one
    noise = np.random.default_rng(seed).standard_normal(one.right.shape) * level
    with np.errstate(over="ignore"):
        return replace(one, right=(one.right * (1 + noise)).astype(np.float32))


def halved(one):
    """Rounds all values to bfloat16."""

    def low(value):
        if value is None or value.dtype != np.float32:
            return value
        return rounded(value.astype(np.float64), "bfloat16").astype(np.float32)

    def lows(pieces):
        return tuple(
            Piece(
                replace(p.result, dtype="bfloat16" if p.result.dtype.startswith("float") else p.result.dtype),
                low(p.value),
            )
            for p in pieces
        )

    return replace(
        one,
        left=low(one.left),
        right=low(one.right),
        left_inputs=lows(one.left_inputs),
        right_inputs=lows(one.right_inputs),
        left_ops=lows(one.left_ops),
        right_ops=lows(one.right_ops),
        agreed={name: low(value) for name, value in one.agreed.items()},
    )


def softmax(values):
    with np.errstate(invalid="ignore"):
        values = np.exp(values - values.max(-1, keepdims=True))
    return values / values.sum(-1, keepdims=True)


def rms_norm(x, epsilon=1e-6, weight=1.0):
    x = x.astype(np.float64)
    return single(x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight)


def layer_norm(x, epsilon=1e-5, weight=1.0, bias=0.0):
    x = x.astype(np.float64)
    centered = x - x.mean(-1, keepdims=True)
    return single(centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon) * weight + bias)


def angles(rows, width, base=1e4, start=0):
    return (start + np.arange(rows))[:, None] * base ** (-2 * np.arange(width // 2) / width)


def rotated(x, theta, layout="half-split"):
    """Turns x [..., position, element] in its first elements."""
    width = 2 * theta.shape[-1]
    cos, sin, y = np.cos(theta), np.sin(theta), x.astype(np.float64).copy()
    first, second = (
        (slice(0, width // 2), slice(width // 2, width))
        if layout == "half-split"
        else (slice(0, width, 2), slice(1, width, 2))
    )
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return single(y)


def causal(rows, columns=None, shift=0):
    columns = rows if columns is None else columns
    return np.arange(columns)[None] > np.arange(rows)[:, None] + shift


def masked(scores, mask, low=-np.inf):
    return np.where(mask, low, scores).astype(np.float32)
