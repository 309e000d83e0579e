"""Runs one fault of a device, and counts what became of it."""

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from nbkit.errors import nearest
from nbkit.patterns import op_matcher
from nbkit.simulated.call import Call, NotApplicableError, tensors_in
from nbkit.simulated.faults.fault import Fault
from nbkit.simulated.faults.kinds import KINDS
from nbkit.simulated.faults.rounding import rounding_ratio

VOID = "each result was correct to the bit: the fault is below rounding, or void for these values"


class PlantedFault:
    """Holds a fault and what became of it."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.matches = op_matcher(fault.op)
        self.calls = self.fitting = self.fired = self.changed = 0
        self.ratio: float | None = None
        self.obstacle: str | None = None
        self.memory: dict[Any, Any] = {}

    def fits(self, tensors: list[Tensor]) -> bool:
        """Returns whether a call of an op that it names meets its conditions; counts the call."""
        self.calls += 1
        fits = self.fault.fits(tensors)
        self.fitting += fits
        return fits

    def wrong_results(self, call: Call) -> list[Tensor] | None:
        """Returns what the call is to return instead; None where this fault does not fire."""
        is_due = self.fault.nth_call in (None, self.fitting)
        try:
            wrong = self.fault.spoil(call, self.memory) if is_due or self.fault.remembers else None
            if wrong is None or not is_due:
                return None
            if [tensor.shape for tensor in wrong] != [tensor.shape for tensor in call.results]:
                raise NotApplicableError(f"{self.fault.kind} gives results of other shapes than {call.func}")
        except NotApplicableError as reason:
            self.obstacle = str(reason)
            return None
        except Exception as error:  # what the user runs must not end because a fault cannot be made
            self.obstacle = f"{self.fault.kind} failed on {call.func}: {error}"
            return None
        return wrong

    def fire(self, call: Call, wrong: list[Tensor]) -> None:
        """Writes the wrong results over the correct ones, and notes how far they are from them."""
        self.fired += 1
        if all(map(same_bits, call.results, wrong)):
            return
        self.changed += 1
        ratio = rounding_ratio(call, wrong)
        if ratio is not None:
            self.ratio = max(self.ratio or 0.0, ratio)
        _overwrite(call.results, wrong)

    def row(self, seen: Collection[str]) -> dict[str, Any]:
        """Returns the fault as a row of the report; `seen` are the names of all ops that ran."""
        fault = self.fault
        counts = {"calls": self.calls, "fired": self.fired, "changed": self.changed, "rounding_ratio": self.ratio}
        status, message = self._verdict(seen)
        named = {name: getattr(fault, name) for name in ("op", "kind", "phase", "min_numel", "nth_call")}
        return {**named, "size": fault.amount, **counts, "status": status, "message": message}

    def _verdict(self, seen: Collection[str]) -> tuple[str, str | None]:
        if not self.calls:
            known = nearest(self.fault.op, seen) if seen else "none has run."
            return "never ran", f"no op of the device fits {self.fault.op!r}; {known}"
        if self.changed:
            return "changed", None
        if self.fired:
            return "no effect", VOID
        if self.obstacle is not None:
            return "cannot apply", self.obstacle
        return "not reached", self._missing()

    def _missing(self) -> str:
        nth, needs = self.fault.nth_call, KINDS[self.fault.kind].needs
        if not self.fitting:
            return f"none of {self.calls} calls met its conditions (phase, min_numel, where)"
        if nth is not None and self.fitting < nth:
            return f"{self.fitting} calls met its conditions, so there was no call {nth}"
        return f"no call that was due had {needs}"


def run_spoilt(planted: list[PlantedFault], func: Any, args: Any, kwargs: Any) -> Any:
    """Returns what the op returns, made wrong by the first of the faults that fires."""
    tensors = list(tensors_in([*args, *kwargs.values()]))
    fitting = [fault for fault in planted if fault.fits(tensors)]
    if not fitting:
        return func(*args, **kwargs)
    call = Call(func, args, kwargs)
    out = call.run()
    candidates = [(fault, fault.wrong_results(call)) for fault in fitting]
    for fault, wrong in candidates:
        if wrong is not None:
            fault.fire(call, wrong)
            break
    return out


def _overwrite(results: list[Tensor], wrong: list[Tensor]) -> None:
    with torch.no_grad():
        for right, spoilt in zip(results, wrong, strict=True):
            if not same_bits(right, spoilt):
                right.copy_(spoilt)


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Returns whether two tensors hold the same values to the bit, NaN and the sign of zero included."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    views = [tensor.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8) for tensor in (left, right)]
    return torch.equal(*views)
