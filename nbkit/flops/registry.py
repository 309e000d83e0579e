"""Keeps the FLOP formulas by op: those of this table, of the user and of torch."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, TypeVar

from nbkit.errors import OptionError

Formula = Callable[..., int]
AnyFormula = TypeVar("AnyFormula", bound=Formula)
Shape = Sequence[int]
OP = re.compile(r"\w+\.\w+")


def register_flop_formula(targets: object) -> Callable[[AnyFormula], AnyFormula]:
    """Returns a decorator that registers a function as the FLOP formula (2 x multiply-adds) of one op or several.

    `targets` is an op such as `torch.ops.mylib.attention`, its name ("mylib.attention"), or a list of them; all
    overloads of an op share its formula. The formula gets the arguments of a call in their order: for a tensor the list
    of its sizes, [] for an absent one, and numbers, flags and lists as they are. `optime`, and `load` of a Chrome
    trace, fill `ops.flops` with what it returns; a call that it raises on keeps a null. A second formula for an op
    replaces the first. Formulas registered by `torch.utils.flop_counter.register_flop_formula` count too, if they need
    no more than these arguments. Raises OptionError for a target that is no op.

        @nbkit.register_flop_formula("mylib.attention")
        def attention(query, key, value, *others):
            return 4 * query[0] * query[1] * key[1] * query[2]
    """
    names = [packet_name(target) for target in (targets if isinstance(targets, list | tuple) else [targets])]

    def register(formula: AnyFormula) -> AnyFormula:
        FORMULAS.update(dict.fromkeys(names, formula))
        return formula

    return register


def packet_name(op: object) -> str:
    """Returns the name of an op without its overload: aten.mm for "aten::mm", "aten.mm.default" or the op itself."""
    if match := OP.match(str(op).replace("::", ".")):
        return match[0]
    raise OptionError(f"{op!r} is not an op; give one such as torch.ops.mylib.attention, or its name.")


def formulas() -> dict[str, Formula]:
    """Returns all formulas by op name: those of this table, and for other ops those registered with torch."""
    # Whoever registered one with torch has imported this module; importing it here would cost what nobody may need.
    registry = getattr(sys.modules.get("torch.utils.flop_counter"), "flop_registry", {})
    # What torch did not wrap wants tensors, not shapes; what is no op of a library has another form of name.
    theirs = {str(op): formula for op, formula in registry.items() if hasattr(formula, "__wrapped__")}
    return {name: formula for name, formula in theirs.items() if OP.fullmatch(name)} | FORMULAS


def call_flops(formula: Formula, shapes: Sequence[Any], values: Sequence[Any] = ()) -> int | None:
    """Returns the FLOPs of a call, whose `values` are null for tensors; None if the formula cannot tell."""
    call = [shape if value is None else value for shape, value in zip_longest(shapes, values)]
    try:
        return int(formula(*call))
    except Exception:  # one that the user registered, too, must not cost the recording
        return None


def _product(left: Shape, right: Shape, *_: Any) -> int:
    """Counts (..., m, k) by (..., k, n)."""
    return 2 * prod(left) * right[-1]


def _biased_product(_: Shape, left: Shape, right: Shape, *__: Any) -> int:
    return _product(left, right)


def _attention(query: Shape, key: Shape, value: Shape, *_: Any) -> int:
    """Counts query (B, H, S, E), key (B, G, L, E), value (B, G, L, V): scores, and their product with the values."""
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(_: Shape, query: Shape, key: Shape, value: Shape, *__: Any) -> int:
    """Counts the scores again, and for each of the two products the gradients of both factors."""
    return 2 * prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _convolution(
    x: Shape, weight: Shape, _: Any, stride: Shape, padding: Shape, dilation: Shape, transposed: bool, *__: Any
) -> int:
    """Counts each weight once per position of the result (of the input, if transposed)."""
    return 2 * x[0] * prod(weight) * prod(x[2:] if transposed else _sizes(x, weight, stride, padding, dilation))


def _convolution_backward(gradient: Shape, x: Shape, weight: Shape, *options: Any) -> int:
    """Counts the gradients of input and weight as much as the convolution, each."""
    transposed, wanted = options[-4], options[-1]
    count: int = sum(wanted[:2])
    return count * 2 * x[0] * prod(weight) * prod((x if transposed else gradient)[2:])


def _onednn_convolution(
    x: Shape, weight: Shape, _: Any, padding: Shape, stride: Shape, dilation: Shape, *__: Any
) -> int:
    return _convolution(x, weight, None, stride, padding, dilation, False)


def _cudnn_convolution(x: Shape, weight: Shape, padding: Shape, stride: Shape, dilation: Shape, *_: Any) -> int:
    return _convolution(x, weight, None, stride, padding, dilation, False)


def _slow_convolution(x: Shape, weight: Shape, _: Any, __: Any, stride: Shape, padding: Shape) -> int:
    return _convolution(x, weight, None, stride, padding, [1], False)


def _sizes(x: Shape, weight: Shape, stride: Shape, padding: Shape, dilation: Shape) -> list[int]:
    """Returns the sizes of a convolution's result beyond batch and channels; an option of one value holds for all."""
    dims = len(x) - 2
    steps, pads, gaps = (list(option) * (dims if len(option) == 1 else 1) for option in (stride, padding, dilation))
    return [
        (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, gap in zip(x[2:], weight[2:], steps, pads, gaps, strict=True)
    ]


def _under(formula: Formula, *names: str) -> Mapping[str, Formula]:
    return {f"aten.{name}": formula for name in names}


_ATTENTION = [
    f"_scaled_dot_product_{kind}"
    for kind in (
        "flash_attention",
        "efficient_attention",
        "cudnn_attention",
        "flash_attention_for_cpu",
        "fused_attention_overrideable",
    )
]
# By the op's name without its overload. Attention counts every position, whatever its mask.
FORMULAS: dict[str, Formula] = {
    **_under(_product, "mm", "bmm", "_scaled_mm"),
    **_under(_biased_product, "addmm", "baddbmm", "_addmm_activation"),
    **_under(_convolution, "convolution", "_convolution", "convolution_overrideable"),
    **_under(_onednn_convolution, "mkldnn_convolution"),
    **_under(_cudnn_convolution, "cudnn_convolution"),
    **_under(_slow_convolution, "_slow_conv2d_forward"),
    **_under(_convolution_backward, "convolution_backward", "convolution_backward_overrideable"),
    **_under(_attention, *_ATTENTION),
    **_under(_attention_backward, *(f"{name}_backward" for name in _ATTENTION)),
}
