"""Splits what adds a bias to a product into the product and the sum, as the Analyzer's bias_addition_split does."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nbkit.ops.families import BIASED_LAYERS, BIASED_PRODUCTS

BIAS = 2  # its place in a call of linear or a convolution
TYPES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
Call = Callable[[Any, Any, Any], Any]  # notes and runs a call of a function


def has_bias(module: nn.Module) -> bool:
    """Returns whether a module of torch's adds a bias to a product; the Analyzer has these types, no other."""
    return type(module) in TYPES and isinstance(module.bias, Tensor)


def split_call(func: Any, args: Any, kwargs: Any) -> Callable[[Call], Any] | None:
    """Returns what makes the calls in place of one that adds a bias; None for any other."""
    name = getattr(func, "__name__", "")
    if name in BIASED_LAYERS:
        bias = args[BIAS] if len(args) > BIAS else kwargs.get("bias")
        return None if bias is None else partial(_layer, func, args, kwargs, bias)
    if name in BIASED_PRODUCTS and len(args) == len(("input", "left", "right")) and not {*kwargs} - {"alpha", "beta"}:
        product = torch.mm if BIASED_PRODUCTS[name] == "mm" else torch.bmm
        return partial(_product, product, args, kwargs)
    return None


def _layer(func: Any, args: Any, kwargs: Any, bias: Tensor, call: Call) -> Any:
    rest = {name: value for name, value in kwargs.items() if name != "bias"}
    product = call(func, (*args[:BIAS], None, *args[BIAS + 1 :]) if len(args) > BIAS else args, rest)
    spatial = args[1].dim() - 2 if func.__name__ != "linear" else 0
    if spatial:
        bias = call(Tensor.reshape, (bias, (-1, *[1] * spatial)), {})
    return call(torch.add, (product, bias), {})


def _product(func: Any, args: Any, kwargs: Any, call: Call) -> Any:
    added, beta, alpha = args[0], kwargs.get("beta", 1), kwargs.get("alpha", 1)
    made = call(func, args[1:], {})
    if func is torch.bmm:
        made = call(torch.sum, (made, 0), {})
    if alpha != 1:
        made = call(torch.mul, (made, alpha), {})
    if beta != 1:
        added = call(torch.mul, (added, beta), {})
    return call(torch.add, (made, added), {})
