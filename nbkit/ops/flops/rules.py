"""Says what one call of an op computes: one table of rules by op, of its products and of its elementwise arithmetic."""

from typing import Any, NamedTuple

from nbkit.ops.flops.convolutions import CONVOLUTIONS
from nbkit.ops.flops.counts import Count, nothing, per_argument, per_result
from nbkit.ops.flops.elementwise import ELEMENTWISE
from nbkit.ops.flops.linear_algebra import LINEAR_ALGEBRA
from nbkit.ops.flops.products import PRODUCTS, Formula
from nbkit.ops.flops.recurrent import RECURRENT


class Rule(NamedTuple):
    """Holds how an op's FLOPs are counted.

    `flops` counts matrix products, convolutions and attention (2 x multiply-adds), and factorizations and Fourier
    transforms (their usual counts), by sizes and values of the arguments in their order; None if the op has none.
    `elementwise` counts all other arithmetic by arguments, keyword arguments and result: one for each element and
    operation, whatever its dtype. A comparison counts as an operation, a function such as exp or gelu and its
    derivative as one, softmax as 4, a norm as 5, 4 without weight. Copies, moves and random numbers count nothing.
    """

    flops: Formula | None
    elementwise: Count

    def is_nothing(self) -> bool:
        """Returns whether no arithmetic of any call counts as elementwise."""
        return self.elementwise is nothing


_PRODUCTS = PRODUCTS | CONVOLUTIONS | RECURRENT | LINEAR_ALGEBRA
RULES: dict[str, Rule] = {
    name: Rule(_PRODUCTS.get(name), ELEMENTWISE.get(name, nothing)) for name in (*ELEMENTWISE, *_PRODUCTS)
}
NOTHING = Rule(None, nothing)
# What they add up is small beside what they send.
COLLECTIVES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")
ONCE = Rule(None, per_result(1))
ONCE_IN_LISTS = Rule(None, per_argument(1))


def rule_of(func: Any) -> Rule | None:
    """Returns the rule of an op (an OpOverload); None if there is none.

    An op in place has the rule of the one that returns a new tensor; ops that torch tags as pointwise and no table
    names count once for each element of their result, those on lists of tensors once for each element of the first.
    """
    name = f"{func.namespace}.{func._opname}"
    rule = RULES.get(name) or RULES.get(name.removesuffix("_"))
    if rule is not None:
        return rule
    is_copy = func.namespace == "aten" and func._opname.endswith("_copy")
    if is_copy or func.namespace in COLLECTIVES or _moves_nothing(func):
        return NOTHING
    if name.startswith("aten._foreach_"):
        return ONCE_IN_LISTS
    return ONCE if any(tag.name == "pointwise" for tag in func.tags) else None


def _moves_nothing(func: Any) -> bool:
    """Returns whether an op only makes a view, or takes no tensor."""
    if not any("Tensor" in str(argument.type) for argument in func._schema.arguments):
        return True
    aliases = [returned.alias_info for returned in func._schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
