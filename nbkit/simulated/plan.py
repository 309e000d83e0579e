"""Plan: the faults of a simulated device, how often each fired, and the report about them."""

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from nbkit.errors import nearest
from nbkit.patterns import op_matcher
from nbkit.schema import FAULTS
from nbkit.simulated.call import Call, NotApplicableError, tensors_in
from nbkit.simulated.fault import Fault
from nbkit.simulated.kinds import KINDS


class PlantedFault:
    """A fault and what became of it."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.matches = op_matcher(fault.op)
        self.calls = self.fitting = self.fired = self.changed = 0
        self.obstacle: str | None = None
        self.memory: dict[Any, Any] = {}

    def fits(self, tensors: list[Tensor]) -> bool:
        """Whether a call of an op that it names meets its conditions; counts the call."""
        self.calls += 1
        fits = self.fault.fits(tensors)
        self.fitting += fits
        return fits

    def wrong_results(self, call: Call) -> list[Tensor] | None:
        """What the call is to give instead; None where this fault does not fire."""
        is_due = self.fault.nth_call in (None, self.fitting)
        try:
            wrong = self.fault.spoil(call, self.memory) if is_due or self.fault.remembers else None
        except NotApplicableError as reason:
            self.obstacle = str(reason)
            return None
        return wrong if is_due else None

    def row(self, seen: Iterable[str]) -> dict[str, Any]:
        """The fault as a row of the report; `seen` are the names of all ops that ran."""
        fault = self.fault
        counts = {"calls": self.calls, "fired": self.fired, "changed": self.changed}
        status, message = self._verdict(seen)
        named = {name: getattr(fault, name) for name in ("op", "kind", "phase", "min_numel", "nth_call")}
        return {**named, "size": fault.amount, **counts, "status": status, "message": message}

    def _verdict(self, seen: Iterable[str]) -> tuple[str, str | None]:
        if not self.calls:
            return "never ran", f"no op of the device fits {self.fault.op!r}; {nearest(self.fault.op, seen)}"
        if self.changed:
            return "changed", None
        if self.fired:
            return (
                "no effect",
                "each result was right to the bit: the fault is below rounding, or void for these values",
            )
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


class Plan:
    """Faults that hold together: those of a device, or of one block, which adds to what held before it."""

    def __init__(self, faults: Iterable[Fault] = (), parent: "Plan | None" = None) -> None:
        self.own = [PlantedFault(fault) for fault in faults]
        self.all: list[PlantedFault] = [*self.own, *(parent.all if parent is not None else ())]
        self.parent = parent
        self.seen: set[str] = set()
        self._runners: dict[Any, Callable[..., Any]] = {}

    def runner(self, func: Any) -> Callable[..., Any]:
        """What runs `func`: itself, or the first fault that names it; views compute nothing that could be wrong."""
        run = self._runners.get(func)
        if run is None:
            name = str(func)
            self.note(name)
            run = self._runners[func] = self._choose(func, name)
        return run

    def note(self, name: str) -> None:
        plan: Plan | None = self
        while plan is not None:
            plan.seen.add(name)
            plan = plan.parent

    def _choose(self, func: Any, name: str) -> Callable[..., Any]:
        named = [planted for planted in self.all if planted.matches(name)]
        run: Callable[..., Any] = (lambda *args, **kwargs: run_spoilt(named, func, args, kwargs)) if named else func
        return run

    def report(self) -> pd.DataFrame:
        """The FAULTS frame: one row per fault, in the order given, with how often it was met, fired and mattered."""
        rows = [planted.row(self.seen) for planted in self.own]
        return FAULTS.frame([{"fault_id": number, **row} for number, row in enumerate(rows)])


_active: list[Plan] = [Plan()]


def active_plan() -> Plan:
    """The faults that hold now, in every thread: autograd runs backward passes of a device in one of its own."""
    return _active[-1]


def enter(plan: Plan) -> None:
    """Let `plan` hold until it is left."""
    _active.append(plan)


def leave(plan: Plan) -> None:
    """Let what held before `plan` hold again."""
    _active.remove(plan)


def replace_base(plan: Plan) -> None:
    """Let `plan` be what holds outside all blocks."""
    _active[0] = plan


def run_spoilt(planted: list[PlantedFault], func: Any, args: Any, kwargs: Any) -> Any:
    """What the op returns, made wrong by the first of the faults that fires."""
    tensors = list(tensors_in([*args, *kwargs.values()]))
    fitting = [fault for fault in planted if fault.fits(tensors)]
    if not fitting:
        return func(*args, **kwargs)
    call = Call(func, args, kwargs)
    out = call.run()
    candidates = [(fault, fault.wrong_results(call)) for fault in fitting]
    for fault, wrong in candidates:
        if wrong is not None:
            fault.fired += 1
            fault.changed += _overwrite(call.results, wrong)
            break
    return out


def _overwrite(results: list[Tensor], wrong: list[Tensor]) -> bool:
    """Write the wrong values into the results; whether any bit differs."""
    changed = False
    with torch.no_grad():
        for right, other in zip(results, wrong, strict=True):
            if not same_bits(right, other):
                right.copy_(other)
                changed = True
    return changed


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors hold the same values to the bit, NaN and the sign of zero included."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    views = [tensor.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8) for tensor in (left, right)]
    return torch.equal(*views)
