"""What is to be done with an op: compare it, check it by statistics, or leave it out for a reason."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.frames.op_names import op_name
from nbkit.capture.replay import substitutes
from nbkit.capture.replay.copies import tensors_in
from nbkit.ops import undeclared
from nbkit.ops.families import QUIET_VIEWS, RESIZING, UNFILLED

COLLECTIVES = frozenset({"c10d", "_c10d_functional", "c10d_functional", "symm_mem"})
# FSDP's: fills this process's part of a buffer and returns the buffer, whose rest is memory from empty().
BUFFERS = frozenset({"all_gather_copy_in"})
A_VIEW = "views"  # why they are left out
CHANGED_FORM = "ops that change a tensor's metadata only"
PROBABILITIES = ("dropout_p", "dropout")
VALUES = {**undeclared.VALUES, **substitutes.VALUES}
MARKERS = frozenset({"prim", "profiler", "inductor", "debugprims"})


@dataclass(frozen=True)
class OpTraits:
    """How calls of one op are treated."""

    func: Any
    name: str
    packet: str
    leave_out: str | None  # why no call of it is compared
    is_random: bool
    written: tuple[int, ...]  # positions of the arguments it writes to
    written_names: tuple[str, ...]  # their names, as keyword arguments
    is_pointwise: bool  # each element of the result is made of the elements at its place
    is_out: bool  # what it writes to is given as out=, and not read
    values: int | None  # how many of its results are values; None if all are

    @property
    def is_writing(self) -> bool:
        """Whether it writes to an argument, by its schema or not."""
        return bool(self.written_names)

    @property
    def changes_arguments(self) -> bool:
        """Whether it needs copies of its arguments to run again: it writes to them, or to what its forward op noted."""
        return self.is_writing or self.packet in undeclared.CONSUMING


@cache
def traits_of(func: Any) -> OpTraits:
    """The traits for an op; higher-order operators and what is not a tensor's work are left out."""
    if not isinstance(func, OpOverload):
        return OpTraits(
            func, op_name(func), "", "higher-order ops: torch runs their parts below", False, (), (), False, False, None
        )
    arguments = func._schema.arguments
    others = undeclared.WRITES.get(func._opname, ())
    written = [(number, argument) for number, argument in enumerate(arguments) if argument.is_write or number in others]
    return OpTraits(
        func,
        op_name(func),
        func._opname,
        _why_not(func),
        torch.Tag.nondeterministic_seeded in func.tags,
        tuple(number for number, argument in written if not argument.kwarg_only),
        tuple(argument.name for _, argument in written),
        torch.Tag.pointwise in func.tags,
        any(argument.is_out for argument in arguments),
        VALUES.get(func._opname),
    )


def _why_not(func: OpOverload) -> str | None:
    name, returns = func._opname, func._schema.returns
    if func.namespace in MARKERS:
        return "metadata ops (no tensor computation)"
    if func.namespace in COLLECTIVES:
        return "collectives: their result depends on other processes"
    if name in BUFFERS:
        return "buffers that other processes are still to fill"
    if name in UNFILLED:
        return "uninitialized memory (empty, empty_like)"
    if name in RESIZING or name == "detach_":
        return CHANGED_FORM
    if name in QUIET_VIEWS or func.is_view:
        return A_VIEW
    has_tensor = any("Tensor" in str(result.type) for result in returns)
    if not has_tensor and not any(argument.is_write for argument in func._schema.arguments):
        return "ops that return no tensor (item, is_same_size)"
    return None


def bound(func: OpOverload, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments of a call by the names of the op's schema, defaults filled in."""
    arguments = func._schema.arguments
    defaults = {argument.name: argument.default_value for argument in arguments if argument.has_default_value()}
    return {**defaults, **{argument.name: value for argument, value in zip(arguments, args, strict=False)}, **kwargs}


def draws(traits: OpTraits, args: Any, kwargs: Any) -> bool:
    """Whether a call of a random op draws numbers: an attention op without dropout does not."""
    arguments = bound(traits.func, args, kwargs)
    return not any(arguments.get(name) in (0, 0.0) for name in PROBABILITIES)


def written_tensors(traits: OpTraits, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that a call writes to."""
    written: list[Tensor] = []
    if not traits.written_names:
        return written
    for position in traits.written:
        if position < len(args):
            written.extend(tensors_in(args[position]))
    for name in traits.written_names:
        written.extend(tensors_in(kwargs.get(name)))
    return written
