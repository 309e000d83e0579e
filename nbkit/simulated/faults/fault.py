"""Describes a fault: what goes wrong in which ops of a simulated device, and when."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbkit.errors import OptionError, nearest
from nbkit.patterns import op_matcher, split_patterns
from nbkit.simulated.call import Call, NotApplicableError
from nbkit.simulated.faults.kinds import KINDS
from nbkit.trace.checks import is_whole_number

PHASES = ("forward", "backward")
# Fields that are whole numbers: name, least one, and what it is.
COUNTS = (("min_numel", 0, "number of elements"), ("nth_call", 1, "call"), ("output", 0, "result"))


@dataclass(frozen=True)
class Fault:
    """Describes one fault of a simulated device.

    Args:
        op: names of the aten ops that have it, as in optrace: "aten.addmm", "softmax", "*norm_backward", "re:...".
        kind: what goes wrong; docs/guides/simulated_device.md and `nbkit.FAULT_KINDS` have the list.
        size: how much, in the measure of the kind; None takes the kind's own.
        phase: "backward" for a wrong gradient alone, "forward" for what runs outside a backward pass, None for both.
        min_numel: only in calls with a tensor of at least so many elements.
        nth_call: only in that call, the first is 1, of those that fit all the other conditions.
        where: only in calls for which it answers True, given the op's input tensors (on the CPU).
        output: only this one of the op's results, from 0: tensors it writes into, then those it returns.

    Raises:
        OptionError: on a value that is none of these.
        PatternError: on a bad pattern.
    """

    op: str
    kind: str = "relative_error"
    size: float | None = None
    phase: str | None = None
    min_numel: int = 0
    nth_call: int | None = None
    where: Callable[[Sequence[Tensor]], bool] | None = None
    output: int | None = None

    def __post_init__(self) -> None:
        if not split_patterns(self.op):
            raise OptionError(f"op={self.op!r} names no op; give a name or a pattern, such as 'aten.addmm' or 'mm'.")
        op_matcher(self.op)
        if self.kind not in KINDS:
            raise OptionError(f"kind={self.kind!r} is not known; {nearest(str(self.kind), KINDS)}")
        if self.phase not in (None, *PHASES):
            raise OptionError(f"phase={self.phase!r} is not known; {nearest(str(self.phase), PHASES)}")
        for name, least, meaning in COUNTS:
            value = getattr(self, name)
            if value is not None and (not is_whole_number(value) or value < least):
                raise OptionError(f"{name} must be a {meaning}, got {value!r}; give a whole number from {least} up.")
        if self.where is not None and not callable(self.where):
            raise OptionError(
                f"where must be a function, got {self.where!r}; give one that takes the op's inputs and answers "
                f"True or False."
            )
        KINDS[self.kind].check_size(self.size)

    @property
    def amount(self) -> Any:
        """Returns `size`, or the kind's own where none was set."""
        return KINDS[self.kind].default_size if self.size is None else self.size

    @property
    def remembers(self) -> bool:
        """Returns whether it needs to see also the calls in which it does not fire."""
        return KINDS[self.kind].remembers

    def fits(self, call_tensors: Sequence[Tensor]) -> bool:
        """Returns whether a call of an op that the pattern names, with these inputs, meets the other conditions."""
        if self.phase is not None and self.phase != PHASES[in_backward()]:
            return False
        if max((tensor.numel() for tensor in call_tensors), default=0) < self.min_numel:
            return False
        return self.where is None or bool(self.where(call_tensors))

    def spoil(self, call: Call, memory: dict[Any, Any]) -> list[Tensor] | None:
        """Returns the wrong results in place of `call.results`; None where there is nothing wrong to return yet."""
        call.check_computes()
        results = KINDS[self.kind].spoil(call, self.amount, memory)
        if results is None or self.output is None:
            return results
        if self.output >= len(results):
            raise NotApplicableError(f"{call.func} has no result {self.output}; it has {len(results)}")
        return [wrong if n == self.output else call.results[n] for n, wrong in enumerate(results)]


def in_backward() -> bool:
    """Returns whether autograd is running a backward pass in this thread."""
    running: bool = torch._C._current_graph_task_id() != -1
    return running
