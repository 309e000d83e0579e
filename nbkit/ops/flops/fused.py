"""Counts the arithmetic of fused ops outside their products: attention, encoder layers, optimizers."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from nbkit.ops.flops.counts import NORM, SOFTMAX, Count, argument, elements


def _scores(query: Any, key: Any, keys: int) -> int:
    return int(prod(query.shape[:-1]) * key.shape[keys])


def attention(keys: int) -> Count:
    """Returns the rule of attention with its keys along a dimension: scale, softmax and mask of each score."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        masks = (kwargs.get("attn_mask"), kwargs.get("attn_bias"), args[3] if len(args) > 3 else None)
        has_mask = any(hasattr(mask, "shape") for mask in masks)
        return (SOFTMAX + 1 + has_mask) * _scores(args[0], args[1], keys)

    return count


def attention_backward(keys: int) -> Count:
    """Returns the rule of its gradient: the softmax again, its derivative, the result by its gradient."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return 6 * _scores(args[1], args[2], keys) + 2 * elements(args[0])

    return count


def encoder_attention(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts the biases of the four projections, and scale, softmax and mask of each score."""
    query, key, value, heads = args[0], args[1], args[2], int(args[4])
    mask = argument(args, kwargs, 9, "mask")
    biases = elements(query) + elements(key) + elements(value) + elements(query)
    return biases + (SOFTMAX + 1 + (mask is not None)) * heads * _scores(query, key, -2)


def encoder_layer(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts attention, two norms, two sums, and biases and activation of the feed-forward part."""
    x, heads, mask = args[0], int(args[2]), argument(args, kwargs, 18, "mask")
    hidden = int(prod(x.shape[:-1])) * elements(args[15])
    attention = encoder_attention([x, x, x, None, heads], {"mask": mask}, None)
    return attention + 2 * (NORM + 1) * elements(x) + elements(x) + 2 * hidden


def adam(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts 13 for each parameter: 3 and 4 for the averages, 3 for the divisor, 3 for the step."""
    options = sum(bool(kwargs.get(name)) for name in ("weight_decay", "amsgrad", "maximize"))
    return (13 + options) * elements(args[0])


def sgd(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts 1 for each parameter, and 2 for momentum, which the first step only sets."""
    momentum = bool(kwargs.get("momentum"))
    options = sum(bool(kwargs.get(name)) for name in ("weight_decay", "maximize"))
    moving = 2 * (not kwargs.get("is_first_step")) + bool(kwargs.get("nesterov"))
    return (1 + options + momentum * moving) * elements(args[0])


def adagrad(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Counts 8 for each parameter: 3 for the sum of squares, 2 for the divisor, 3 for the step."""
    return (8 + sum(bool(kwargs.get(name)) for name in ("weight_decay", "maximize"))) * elements(args[0])
