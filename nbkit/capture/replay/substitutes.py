"""What stands in on the CPU for ops without a kernel there that can be trusted with other inputs than their own.

These are fused attention, vendors' batch norms and oneDNN's LSTM layer (see lstm.py).

Each takes the arguments of a call by name and gives the results of it that are values, not notes for the backward op.
Attention draws no numbers here: a call with dropout is a random one. Formulas: torch's own documentation of
scaled_dot_product_attention, and native_batch_norm.
"""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.replay import lstm

Arguments = dict[str, Any]


def attention(arguments: Arguments) -> tuple[Tensor, ...]:
    """softmax(q k' scale + bias) v: (B, H, T, D)."""
    return (_weights(arguments) @ _heads(arguments, "value"),)


def attention_backward(arguments: Arguments) -> tuple[Tensor | None, ...]:
    """Gradients of query, key, value and, where there is one, of the bias."""
    weights, query, key, value = (
        _weights(arguments),
        arguments["query"],
        _heads(arguments, "key"),
        _heads(arguments, "value"),
    )
    incoming = arguments["grad_out_"] if "grad_out_" in arguments else arguments["grad_out"]
    of_weights = incoming @ value.mT
    of_scores = weights * (of_weights - (incoming * arguments["out"]).sum(-1, keepdim=True))
    scale = _scale(arguments)
    groups = query.shape[1] // arguments["key"].shape[1]
    of_key, of_value = (
        one.unflatten(1, (-1, groups)).sum(2) for one in (of_scores.mT @ query * scale, weights.mT @ incoming)
    )
    gradients: list[Tensor | None] = [of_scores @ key * scale, of_key, of_value]
    wanted = arguments.get("grad_input_mask")
    if wanted is not None:
        bias = arguments["attn_bias"]
        gradients.append(None if bias is None else of_scores.sum_to_size(bias.shape))
        gradients = [gradient if is_wanted else None for gradient, is_wanted in zip(gradients, wanted, strict=True)]
    return tuple(gradients)


def batch_norm(arguments: Arguments) -> tuple[Tensor, ...]:
    """As native_batch_norm, which also updates the running statistics."""
    names = "input weight bias running_mean running_var training exponential_average_factor epsilon".split()
    results: tuple[Tensor, ...] = torch.ops.aten.native_batch_norm(*(arguments[name] for name in names))
    return results


def batch_norm_backward(arguments: Arguments) -> tuple[Tensor, ...]:
    """As native_batch_norm_backward, in training."""
    names = "grad_output input weight running_mean running_var save_mean save_var".split()
    results: tuple[Tensor, ...] = torch.ops.aten.native_batch_norm_backward(
        *(arguments[name] for name in names), True, arguments["epsilon"], [True] * 3
    )
    return results


def _weights(arguments: Arguments) -> Tensor:
    query, key = arguments["query"], _heads(arguments, "key")
    scores: Tensor = query @ key.mT * _scale(arguments)
    if arguments.get("attn_bias") is not None:
        scores = scores + arguments["attn_bias"]
    if arguments["is_causal"]:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -inf)
    # A row of which nothing is to be seen is zero.
    return scores.softmax(-1).masked_fill((scores == -inf).all(-1, keepdim=True), 0.0)


def _heads(arguments: Arguments, name: str) -> Tensor:
    """Keys or values, each group of queries its own."""
    groups: int = arguments["query"].shape[1] // arguments[name].shape[1]
    tensor: Tensor = arguments[name]
    return tensor.repeat_interleave(groups, 1) if groups > 1 else tensor


def _scale(arguments: Arguments) -> float:
    scale: float | None = arguments.get("scale")
    return 1 / sqrt(arguments["query"].shape[-1]) if scale is None else scale


ATTENTION = [f"_scaled_dot_product_{kind}" for kind in ("flash_attention", "efficient_attention", "cudnn_attention")]
NORMS = ("cudnn_batch_norm", "miopen_batch_norm")
SUBSTITUTES: dict[str, Callable[[Arguments], Any]] = {
    **dict.fromkeys(ATTENTION, attention),
    **dict.fromkeys([f"{name}_backward" for name in ATTENTION], attention_backward),
    **dict.fromkeys(NORMS, batch_norm),
    **dict.fromkeys([f"{name}_backward" for name in NORMS], batch_norm_backward),
    **lstm.FORMULAS,
}
# So many results of these are values.
VALUES = {**dict.fromkeys(ATTENTION, 1), **dict.fromkeys(NORMS, 3)}
