"""Counts the FLOPs of each call of a step that runs by formulas of their own, which look at results, not at options."""

from collections import Counter
from collections.abc import Callable
from math import ceil, log2, prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

REDUCED = "sum mean amax argmax max prod cumsum any all aminmax topk histc".split()
ADDED_BACK = ("embedding_dense_backward", "max_pool2d_with_indices_backward")
SOFTMAX = ("_softmax", "_log_softmax", "_safe_softmax", "_softmax_backward_data", "_log_softmax_backward_data")
NORMS = ("native_layer_norm", "native_group_norm", "native_batch_norm")
THRICE = ("addcmul", "addcdiv", "lerp")
ACTIVATIONS = "floor_divide hardswish hardswish_backward hardtanh_backward softplus_backward".split()
MOVED = ("clone", "masked_fill")


class Calls(TorchDispatchMode):
    """Adds up the calls that run inside, by op, FLOPs of products and elementwise FLOPs; others by their name."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counter[tuple[str, int, int]] = Counter()
        self.others: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        flops = _counted(func, func._opname.removesuffix("_"), args, out)
        if flops is None:
            self.others[str(func)] += 1
        else:
            self.counted[str(func), *flops] += 1
        return out


def _counted(func: Any, name: str, args: Any, out: Any) -> tuple[int, int] | None:
    if name in ("mm", "bmm"):
        return 2 * out.numel() * args[0].shape[-1], 0
    if name in ("addmm", "baddbmm"):
        return 2 * out.numel() * args[1].shape[-1], out.numel()
    if name.startswith("convolution"):
        return _convolution(name, args, out)
    if name.startswith("_scaled_dot_product"):
        return _attention(name, args)
    return _elementwise(func, name, args, out)


def _convolution(name: str, args: Any, out: Any) -> tuple[int, int]:
    if name == "convolution":
        x, weight, bias, transposed = args[0], args[1], args[2], args[6]
        places = x if transposed else out
        return 2 * places.numel() * prod(weight.shape[1:]), out.numel() * (bias is not None)
    gradient, x, weight, transposed = args[0], args[1], args[2], args[7]
    each = 2 * (x if transposed else gradient).numel() * prod(weight.shape[1:])
    to_x, to_weight, to_bias = (given is not None for given in out)
    return each * (to_x + to_weight), gradient.numel() * to_bias


def _attention(name: str, args: Any) -> tuple[int, int]:
    is_backward = name.endswith("backward")
    query, key, value = args[is_backward : 3 + is_backward]
    scores = query.numel() // query.shape[-1] * key.shape[-2]
    if is_backward:
        return 2 * scores * (3 * query.shape[-1] + 2 * value.shape[-1]), 6 * scores + 2 * args[0].numel()
    return 2 * scores * (query.shape[-1] + value.shape[-1]), 5 * scores


def _elementwise(func: Any, name: str, args: Any, out: Any) -> tuple[int, int] | None:
    if name in SOFTMAX:
        return 0, 4 * out.numel()
    if name.removesuffix("_backward") in NORMS:
        return 0, 5 * args[0].numel()
    if name in (*REDUCED, *ADDED_BACK):
        return 0, args[0].numel()
    if name in RARE:
        return RARE[name](args, out)
    if name in MOVED or not isinstance(out, torch.Tensor):
        return None
    return (0, (3 if name in THRICE else 1) * out.numel()) if torch.Tag.pointwise in func.tags else None


def _layer(x: Any, state: Any) -> int:
    """Returns the multiply-adds of an LSTM's layer in one direction."""
    return x.shape[0] * x.shape[1] * state.shape[-1] * 4 * (x.shape[-1] + state.shape[-1])


RARE: dict[str, Callable[[Any, Any], tuple[int, int]]] = {
    **dict.fromkeys(ACTIVATIONS, lambda args, out: (0, out.numel())),
    "nll_loss_forward": lambda args, out: (0, args[1].numel()),
    "sort": lambda args, out: (0, args[0].numel() * ceil(log2(args[0].shape[-1]))),
    "index_put": lambda args, out: (0, args[2].numel() if args[3:] == (True,) else 0),
    "scatter_add": lambda args, out: (0, args[3].numel()),
    "max_pool2d_with_indices": lambda args, out: (0, 9 * out[0].numel()),
    "upsample_bilinear2d": lambda args, out: (0, 4 * out.numel() + 3 * out.numel()),
    "upsample_bilinear2d_backward": lambda args, out: (0, 4 * args[0].numel() + 4 * args[0].numel()),
    "_embedding_bag": lambda args, out: (0, args[1].numel() * out[0].shape[-1]),
    "_embedding_bag_backward": lambda args, out: (0, args[1].numel() * out.shape[-1]),
    "_cdist_forward": lambda args, out: (0, 3 * len(args[0]) * len(args[1]) * args[0].shape[-1]),
    "_cdist_backward": lambda args, out: (0, 4 * len(args[1]) * len(args[2]) * args[1].shape[-1]),
    "_grouped_mm": lambda args, out: (2 * args[0].numel() * out.shape[-1], 0),
    "mkldnn_rnn_layer": lambda args, out: (2 * _layer(args[0], args[5]), (13 + 8) * out[0].numel()),
    "mkldnn_rnn_layer_backward": lambda args, out: (4 * _layer(args[0], args[5]), (23 + 4) * args[7].numel()),
}
