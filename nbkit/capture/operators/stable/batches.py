"""Knows which arguments of a call hold the rows of a batch, and makes the batch shorter, turned round and longer."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nbkit.capture.operators.stable.bits import is_trusted
from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.op_traits import OpTraits, bound
from nbkit.ops.families import ALONG_DIMS, IMAGES
from nbkit.ops.names import base_of

Rows = Callable[[Tensor], Tensor]
MOST_PADDING = 3  # rows


class Rule(NamedTuple):
    """Names the arguments that hold a row for each row of the results, along dim 0; others are the same for all.

    An argument in `perhaps` does so if it has as many dimensions and rows as the result.
    """

    arguments: tuple[str, ...]
    results: tuple[int, ...] = (0,)
    perhaps: tuple[str, ...] = ()


ATTENTION = ("query", "key", "value")
RULES = {
    "mm": Rule(("self",)),
    "addmm": Rule(("mat1",), perhaps=("self",)),
    "bmm": Rule(("self", "mat2")),
    "baddbmm": Rule(("batch1", "batch2"), perhaps=("self",)),
    "mv": Rule(("self",)),
    "linear": Rule(("input",)),
    "convolution": Rule(("input",)),
    "convolution_backward": Rule(("grad_output", "input")),
    "native_layer_norm": Rule(("input",), (0, 1, 2)),
    "native_layer_norm_backward": Rule(("grad_out", "input", "mean", "rstd")),
    "_fused_rms_norm": Rule(("input",), (0, 1)),
    "embedding": Rule(("indices",)),
    "_scaled_dot_product_flash_attention_for_cpu": Rule(ATTENTION, (0, 1), ("attn_mask",)),
    "_scaled_dot_product_flash_attention": Rule(ATTENTION),
    "_scaled_dot_product_efficient_attention": Rule(ATTENTION, perhaps=("attn_bias",)),
    "_scaled_dot_product_flash_attention_for_cpu_backward": Rule(
        ("grad_out", *ATTENTION, "out", "logsumexp"), (0, 1, 2), ("attn_mask",)
    ),
    "_to_copy": Rule(("self",)),
    "clone": Rule(("self",)),
}
# Where dim 0 is not among the dimensions that they are given, it is that of a batch.
ALONG = {
    **dict.fromkeys(ALONG_DIMS, ("self",)),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), ("grad_output", "output")),
}


class Batch(NamedTuple):
    """The arguments of a call that hold `size` rows each, and its results that do."""

    size: int
    arguments: tuple[str, ...]
    results: tuple[int, ...]

    def variants(self) -> Iterator[tuple[str, Rows, Rows]]:
        """Yields other batches: what is said of it, its rows of those there are, and rows of its results to compare.

        The latter are those that the first rows of the batch, as it was, have to equal.
        """
        padding = min(self.size, MOST_PADDING)
        if self.size > 1:
            yield "one-row", lambda rows: rows[:1], lambda rows: rows
        yield (
            "permuted and padded",
            lambda rows: torch.cat([rows, rows[:padding]]).flip(0),
            lambda rows: rows.flip(0)[: self.size],
        )


def batch_of(traits: OpTraits, args: Any, kwargs: Any, out: Any) -> Batch | None:
    """Returns the batch of a call; None where its rows are not known to be independent of each other."""
    named = bound(traits.func, args, kwargs)
    first = next(tensors_in(out), None)
    if traits.is_out or first is None or not first.dim() or not first.shape[0]:
        return None
    rule = _rule(traits, named, first)
    if rule is None:
        return None
    size = first.shape[0]
    is_row: Callable[[Any], bool] = lambda value: _rows(value) == size  # noqa: E731
    if not all(is_row(named[name]) for name in rule.arguments) or not rule.arguments:
        return None
    more = [name for name in rule.perhaps if is_row(named.get(name)) and named[name].dim() == first.dim()]
    return Batch(size, (*rule.arguments, *more), rule.results)


def _rows(value: Any) -> int:
    return value.shape[0] if isinstance(value, Tensor) and value.dim() else 0


def _rule(traits: OpTraits, named: dict[str, Any], first: Tensor) -> Rule | None:
    name = base_of(traits.packet)
    if traits.is_pointwise:
        if any(isinstance(value, list | tuple) and any(True for _ in tensors_in(value)) for value in named.values()):
            return None
        same = [
            key
            for key, value in named.items()
            if isinstance(value, Tensor) and value.dim() == first.dim() and _rows(value) == _rows(first)
        ]
        return Rule(tuple(same))
    if name in ALONG:
        return _rule_along(name, named)
    if name in IMAGES:
        return Rule(("self",)) if named["self"].dim() == len("NCHW") else None
    if len(named.get("normalized_shape") or ()) == first.dim():
        return None
    return RULES.get(name)


def _rule_along(name: str, named: dict[str, Any]) -> Rule | None:
    """The rule for an op along dimensions; None where dim 0 is one of them, or all are."""
    (value, *_) = (named.get(argument) for argument in ALONG[name])
    dims = named.get("dim")
    if not isinstance(value, Tensor) or dims is None:
        return None
    dims = [dims] if isinstance(dims, int) else dims
    if not dims or value.dim() < 2 or any(dim % value.dim() == 0 for dim in dims):
        return None
    return Rule(ALONG[name])


def changed(traits: OpTraits, args: Any, kwargs: Any, names: tuple[str, ...], rows: Rows) -> tuple[Any, Any]:
    """Returns the arguments of a call with other rows, in memory of their own with strides in the same order."""
    args, kwargs = list(args), dict(kwargs)
    for position, argument in enumerate(traits.func._schema.arguments):
        if argument.name not in names:
            continue
        if argument.name in kwargs:
            kwargs[argument.name] = _made(kwargs[argument.name], rows)
        elif position < len(args):
            args[position] = _made(args[position], rows)
    return tuple(args), kwargs


def _made(value: Tensor, rows: Rows) -> Tensor:
    if is_trusted(value):
        return rows(value).clone(memory_format=torch.preserve_format)
    # The device may be wrong in the very ops that make another batch.
    return rows(value.cpu()).clone(memory_format=torch.preserve_format).to(value.device)
