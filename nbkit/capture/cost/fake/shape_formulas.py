"""Keeps the rules that say what a custom op returns, by its shape, for steps that run on shapes alone."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch._ops import OpOverload

from nbkit.capture.cost.ruled_functions import add_rule, is_function, rule_of_running
from nbkit.ops.flops import packet_name
from nbkit.ops.flops.registry import PYTHON

Formula = TypeVar("Formula", bound=Callable[..., Any])
ALIGNMENT = 16  # bytes, of a row of what _grouped_mm returns


def _grouped_mm(left: Any, right: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Returns the result of a product by groups (experts); torch's own rule is for bfloat16 alone, its kernels not."""
    sizes = [left.shape[-2], right.shape[-1]]
    if left.dim() == right.dim():
        sizes.insert(0, len(offs) if left.dim() == 2 else len(left))
    dtype = out_dtype or left.dtype
    row = -(-sizes[-1] * dtype.itemsize // ALIGNMENT) * ALIGNMENT // dtype.itemsize
    strides = [row, 1] if len(sizes) == 2 else [row * sizes[1], row, 1]
    return left.new_empty_strided(sizes, strides, dtype=dtype)


_FORMULAS: dict[str, Callable[..., Any]] = {"aten._grouped_mm": _grouped_mm}


def register_shape_formula(target: object) -> Callable[[Formula], Formula]:
    """Returns a decorator that registers a function as the rule for the shapes of an op's results in `opcost`.

    `target` is an op such as `torch.ops.mylib.attention`, or its name ("mylib.attention"); all its overloads share the
    rule. The function gets the arguments of the call, with tensors that have shape, dtype and device but no values, and
    returns such tensors: `query.new_empty(query.shape)`. It counts in `opcost` alone and before what
    `torch.library.register_fake` knows. A second rule for an op replaces the first.

    `target` may also be a function of Python, or a method of a class: one that cannot run on shapes alone, or is not to
    be entered. In `opcost` the rule runs in its place, with its arguments, and the call is one op; gradients go to the
    tensors among its arguments. Its FLOPs, and those of its gradient, are unknown, unless
    `register_flop_formula(function)` says them, and what it would save for the backward pass is not counted, which a
    note says. Raises OptionError for a target that is no op and no function that modules hold.

        @nbkit.register_shape_formula("mylib.attention")
        def attention(query, key, value):
            return query.new_empty(query.shape)
    """
    name = packet_name(target)

    def register(formula: Formula) -> Formula:
        if is_function(target):
            add_rule(target, formula)
        else:
            _FORMULAS[name] = formula
        return formula

    return register


def shape_formula(func: OpOverload) -> Callable[..., Any] | None:
    """Returns the registered rule of an op; None if it has none."""
    if func.namespace == PYTHON:
        return rule_of_running
    return _FORMULAS.get(f"{func.namespace}.{func._opname}")
