"""Counts FLOPs and bytes of each op that runs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.cost.fake.fake_mode import Alike
from nbkit.capture.cost.traffic import Traffic
from nbkit.capture.replay.copies import tensors_in
from nbkit.ops.collectives import RING, WHOLE, collective_of
from nbkit.ops.flops import formulas, rule_of

NAMESPACES = frozenset(("c10d", "_c10d_functional", "_c10d_functional_autograd"))


class OpCost(NamedTuple):
    """Holds what one call costs; FLOPs are null where no rule tells."""

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
    """Keeps the costs of a step's ops in their order, and the slot of each."""

    def __init__(self) -> None:
        self.slots: list[int] = []
        self.costs: list[OpCost] = []
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
        self.slots.append(slot)
        self.costs.append(known)

    def _cost(self, func: OpOverload, args: Any, kwargs: Any, out: Any, is_in_place: bool) -> OpCost:
        flops, elementwise = self.rules.count(func, args, kwargs, out)
        read, written = self.traffic.bytes_of(func, args, kwargs, out, is_in_place)
        sent = communication_bytes(func, args, kwargs, out)
        dtype = _compute_dtype(args, out)
        return OpCost(dtype, flops, elementwise, read, written, sent)

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
        return flops, elementwise

    def _rule(self, func: OpOverload) -> OpRule:
        formula, rule = self.formulas.get(f"{func.namespace}.{func._opname}"), rule_of(func)
        if rule is None:
            return OpRule(formula, None)
        if formula is None:
            formula = rule.flops
        return OpRule(0 if formula is None else formula, 0 if rule.is_nothing() else rule.elementwise)


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


def communication_bytes(func: OpOverload, args: Any, kwargs: Any, out: Any) -> int | None:
    """Returns the bytes that each process sends, by the ring algorithm; None for an op that is no such collective."""
    if func.namespace not in NAMESPACES:
        return None
    name = collective_of(func._opname)
    kinds = [kind for kind in (*RING, *WHOLE) if name.startswith(kind)]
    size = _group_size(func, args, kwargs)
    if not kinds or size is None:
        return None
    # The whole tensor of a collective is the larger side: the result of a gather, the input of a scatter.
    results = out if isinstance(out, list | tuple) else (out,)
    whole = max(sum(tensor.nbytes for tensor in tensors_in(held)) for held in (*args, *results))
    kind = max(kinds, key=len)
    return RING[kind] * whole * (size - 1) // size if kind in RING else whole * (size > 1)


def _group_size(func: OpOverload, args: Any, kwargs: Any) -> int | None:
    """Returns how many processes take part; None where the call does not tell."""
    for place, argument in enumerate(func._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        if argument.name == "group_size" and isinstance(value, int):
            return value
        if argument.name == "process_group" and isinstance(value, torch.ScriptObject):
            return int(torch._C._distributed_c10d.ProcessGroup.unbox(value).size())
        if argument.name == "group_name" and isinstance(value, str):
            resolve: Any = torch._C._distributed_c10d._resolve_process_group
            try:
                return int(resolve(value).size())
            except (RuntimeError, ValueError, LookupError):  # no group of this name here
                return None
    return None
