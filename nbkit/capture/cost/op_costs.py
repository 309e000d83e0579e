"""Counts FLOPs and bytes of each op that runs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.capture.cost.communication import communication_bytes
from nbkit.capture.cost.fake.fake_mode import Alike
from nbkit.capture.cost.traffic import Traffic
from nbkit.flops import formulas, rule_of


class OpCost(NamedTuple):
    """Holds what one call costs; FLOPs are null where no rule tells."""

    slot: int
    dtype: torch.dtype | None
    flops: int | None
    elementwise_flops: int | None
    read_bytes: int
    written_bytes: int
    communication_bytes: int | None


class OpRule(NamedTuple):
    """Holds how the FLOPs of an op are counted: from its call, or what they always are."""

    flops: Callable[..., int] | int | None
    elementwise: Callable[..., int] | int | None


class OpCosts:
    """Keeps the costs of a step's ops in their order."""

    def __init__(self) -> None:
        self.rows: list[OpCost] = []
        self.rules = OpRules()
        self.without_rule: dict[str, int] = {}
        self.traffic = Traffic()

    def note(
        self,
        slot: int,
        func: OpOverload,
        args: Any,
        kwargs: Any,
        out: Any,
        *,
        is_in_place: bool = False,
        alike: Alike | None = None,
    ) -> None:
        """Counts one call that returned `out`; `is_in_place` says that a step without modes writes into the first.

        Calls that have the same `alike` cost the same; null stands for none.
        """
        known = None if alike is None else alike.costs.get(is_in_place)
        if known is None:
            known = self._cost(func, args, kwargs, out, is_in_place)
            if alike is not None:
                alike.costs[is_in_place] = known
        if known.flops is None:
            self.without_rule[str(func)] = self.without_rule.get(str(func), 0) + 1
        self.rows.append(OpCost(slot, *known[1:]))

    def _cost(self, func: OpOverload, args: Any, kwargs: Any, out: Any, is_in_place: bool) -> OpCost:
        flops, elementwise = self.rules.count(func, args, kwargs, out)
        read, written = self.traffic.bytes_of(func, args, kwargs, out, is_in_place)
        sent = communication_bytes(func, args, kwargs, out)
        dtype = _compute_dtype(args, out)
        return OpCost(-1, dtype, flops, elementwise, read, written, sent)

    def unknown(self) -> dict[str, int]:
        """Returns the ops that have no rule for their FLOPs, with their calls."""
        return dict(sorted(self.without_rule.items()))


class OpRules:
    """Counts the FLOPs of calls by the table of rules and by what the user registered."""

    def __init__(self) -> None:
        self.formulas = formulas()
        self.known: dict[OpOverload, OpRule] = {}

    def count(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> tuple[int | None, int | None]:
        """Returns the FLOPs of products and of elementwise arithmetic of one call; None without a rule."""
        rule = self.known.get(func)
        if rule is None:
            rule = self.known[func] = self._rule(func)
        flops, elementwise = rule
        if callable(flops):
            flops = _called(flops, func, args, kwargs)
        if callable(elementwise):
            try:
                elementwise = elementwise(args, kwargs, out)
            except Exception:  # a call of a form that the rule does not know must not end the step
                elementwise = None
        elif flops is None and elementwise is None and _is_composite(func):
            return self._of_parts(func, args, kwargs)
        return flops, elementwise

    def _rule(self, func: OpOverload) -> OpRule:
        formula, rule = self.formulas.get(f"{func.namespace}.{func._opname}"), rule_of(func)
        if rule is None:
            return OpRule(formula, None)
        if formula is None:
            formula = rule.flops
        return OpRule(0 if formula is None else formula, 0 if rule.is_nothing() else rule.elementwise)

    def _of_parts(self, func: OpOverload, args: Any, kwargs: Any) -> tuple[int | None, int | None]:
        """Counts the ops that a composite one is made of; on shapes they may run once more."""
        try:
            with Parts(self) as parts:
                func.decompose(*args, **kwargs)
        except Exception:  # what the whole op could do, its parts need not
            return None, None
        return parts.flops, parts.elementwise


def _is_composite(func: OpOverload) -> bool:
    """Returns whether an op is made of others, of which a mode sees the whole in inference mode alone."""
    return func.namespace == "aten" and not func._schema.is_mutable and func._can_decompose()


class Parts(TorchDispatchMode):
    """Adds up the FLOPs of the ops that run inside; None if one has no rule."""

    def __init__(self, rules: OpRules) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rules = rules
        self.flops: int | None = 0
        self.elementwise: int | None = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(func, OpOverload) and func.namespace != "prim":
            flops, elementwise = self.rules.count(func, args, kwargs or {}, out)
            self.flops = None if flops is None or self.flops is None else self.flops + flops
            self.elementwise = (
                None if elementwise is None or self.elementwise is None else self.elementwise + elementwise
            )
        return out


def _called(formula: Callable[..., int], func: OpOverload, args: Any, kwargs: Any) -> int | None:
    values = [
        args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)
        for place, argument in enumerate(func._schema.arguments)
    ]
    types = [str(argument.type) for argument in func._schema.arguments]
    shapes = [
        [] if value is None and "Tensor" in kind else _shapes(value) for value, kind in zip(values, types, strict=True)
    ]
    try:
        return int(formula(*shapes))
    except Exception:  # one that the user registered, too, must not end the step
        return None


def _shapes(held: Any) -> Any:
    if isinstance(held, Tensor):
        return list(held.shape)
    return [_shapes(item) for item in held] if isinstance(held, list | tuple) else held


def _compute_dtype(args: Any, out: Any) -> torch.dtype | None:
    """Returns the dtype of the largest floating tensor that goes in or out."""
    largest, most = None, -1
    for held in (args, (out,)):
        for item in held:
            for tensor in item if isinstance(item, list | tuple) else (item,):
                if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.numel() > most:
                    largest, most = tensor.dtype, tensor.numel()
    return largest
