"""Sums wrongly: terms left out or counted twice, another count, another variance, another start."""

from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind

# What holds the terms of a sum along which dimension, by the name of the op.
TERMS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot"), ("self", -1)),
    **dict.fromkeys(("addmm", "addmv"), ("mat1", -1)),
    "baddbmm": ("batch1", -1),
    "convolution": ("input", 1),
    "embedding_dense_backward": ("grad_output", 0),
}
REDUCTIONS = ("sum", "mean", "linalg_vector_norm", "norm", "var", "std")
NORMS = ("native_layer_norm", "native_group_norm", "native_batch_norm")
MAXIMA = ("amax", "max", "max_pool2d_with_indices", "max_pool2d")
MEAN = 1  # the reduction of a loss


def dropped_terms(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns sums and products without their last `size` terms."""
    return _with_last_terms(call, int(size), 0.0)


def repeated_terms(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns sums and products with their last `size` terms counted twice."""
    return _with_last_terms(call, int(size), 2.0)


def wrong_count(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns a mean that is divided by one more than there are numbers."""
    first, count = call.results[0], _count(call)
    return [(first.double() * (count / (count + 1))).to(first.dtype), *call.results[1:]]


def biased_variance(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns variances over n for n - 1, over n - 1 for n, and norms by them."""
    if call.name in ("var", "std", "var_mean", "std_mean"):
        corrected = call.argument("correction") if "correction" in str(call.func) else call.argument("unbiased")
        now = 1 if corrected is None else float(corrected)
        name = "correction" if "correction" in str(call.func) else "unbiased"
        return call.rerun({name: not now if name == "unbiased" else 1 - min(now, 1)})
    if call.name not in NORMS or call.argument("training") is False:
        raise NotApplicableError(f"{call.func} takes no variance")
    return _norm_over_one_less(call)


def zero_start_maximum(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns maxima that begin at 0, so that negative ones come out as that."""
    if call.name not in MAXIMA or not call.results[0].is_floating_point():
        raise NotApplicableError(f"{call.func} is no maximum; {', '.join(MAXIMA)} are")
    return [call.results[0].clamp(min=0), *call.results[1:]]


def exclusive_scan(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns running sums and products that leave out the number at their place."""
    starts = {"cumsum": 0, "cumprod": 1}
    if call.name not in starts:
        raise NotApplicableError(f"{call.func} is no running sum or product")
    (result,), dim = call.results, call.argument("dim")
    wrong = result.roll(1, dim)
    wrong.select(dim, 0).fill_(starts[call.name])
    return [wrong]


def _with_last_terms(call: Call, count: int, factor: float) -> Results:
    name, dim = TERMS.get(call.name, (None, None))
    if call.name in REDUCTIONS:
        dims = call.argument("dim")
        name = call.func._schema.arguments[0].name
        dim = dims if isinstance(dims, int) else (dims[-1] if dims else -1)
    terms = call.argument(name) if name is not None else None
    if name is None or not isinstance(terms, Tensor) or not terms.dim() or dim is None or call.argument("transposed"):
        raise NotApplicableError(f"{call.func} is no sum or product of known terms")
    changed = terms.clone()
    end = changed.narrow(dim, max(changed.shape[dim] - count, 0), min(count, changed.shape[dim]))
    end.mul_(factor)
    return call.rerun({name: changed})


def _count(call: Call) -> int:
    """Returns of how many numbers an element of the first result is the mean."""
    if call.name == "mean" and call.results[0].numel():
        return int(call.inputs[0].numel() // call.results[0].numel())
    if call.name == "avg_pool2d":
        return int(torch.Size(call.argument("kernel_size") * (2 // len(call.argument("kernel_size")))).numel())
    if call.name == "nll_loss_forward" and call.argument("reduction") == MEAN:
        return int(call.argument("target").numel())
    raise NotApplicableError(f"this {call.func} is no mean")


def _norm_over_one_less(call: Call) -> Results:
    """Returns what a norm gives with a variance over n - 1: smaller outputs, and a smaller reciprocal that it keeps."""
    output, mean, inverse = call.results[-3:]
    count = call.inputs[0].numel() // max(mean.numel(), 1)
    if count < 2 or not inverse.numel():
        raise NotApplicableError(f"this {call.func} takes no variance")
    factor = ((count - 1) / count) ** 0.5
    bias = call.argument("bias")
    wide = output.double()
    if isinstance(bias, Tensor):
        shape = bias.shape if call.name == "native_layer_norm" else (-1, *[1] * (wide.dim() - 2))
        wide = wide - bias.double().reshape(shape)
        wrong = wide * factor + bias.double().reshape(shape)
    else:
        wrong = wide * factor
    return [*call.results[:-3], wrong.to(output.dtype), mean, (inverse.double() * factor).to(inverse.dtype)]


KINDS = (
    Kind("dropped_terms", dropped_terms, "the last terms of a sum or product are left out", "how many", 1, smallest=1),
    Kind(
        "repeated_terms",
        repeated_terms,
        "the last terms of a sum or product are counted twice",
        "how many",
        1,
        smallest=1,
    ),
    Kind("wrong_count", wrong_count, "a mean is divided by one more than there are numbers"),
    Kind("biased_variance", biased_variance, "a variance is taken over n - 1 for n, or n for n - 1"),
    Kind("zero_start_maximum", zero_start_maximum, "a maximum begins at 0"),
    Kind("exclusive_scan", exclusive_scan, "a running sum or product leaves out the number at its place"),
)
