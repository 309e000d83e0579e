"""Keeps the rules that say what a custom op returns, by its shape, for steps that run on shapes alone."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch._ops import OpOverload

from nbkit.flops import packet_name

Formula = TypeVar("Formula", bound=Callable[..., Any])
_FORMULAS: dict[str, Callable[..., Any]] = {}


def register_shape_formula(target: object) -> Callable[[Formula], Formula]:
    """Returns a decorator that registers a function as the rule for the shapes of an op's results in `opcost`.

    `target` is an op such as `torch.ops.mylib.attention`, or its name ("mylib.attention"); all its overloads share the
    rule. The function gets the arguments of the call, with tensors that have shape, dtype and device but no values, and
    returns such tensors: `query.new_empty(query.shape)`. It counts in `opcost` alone and before what
    `torch.library.register_fake` knows. A second rule for an op replaces the first. Raises OptionError for a target
    that is no op.

        @nbkit.register_shape_formula("mylib.attention")
        def attention(query, key, value):
            return query.new_empty(query.shape)
    """
    name = packet_name(target)

    def register(formula: Formula) -> Formula:
        _FORMULAS[name] = formula
        return formula

    return register


def shape_formula(func: OpOverload) -> Callable[..., Any] | None:
    """Returns the registered rule of an op; None if it has none."""
    return _FORMULAS.get(f"{func.namespace}.{func._opname}") if _FORMULAS else None
