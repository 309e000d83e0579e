"""Collects the faults of a simulated device that hold together, and reports on them."""

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from nbkit.errors import OptionError
from nbkit.schema import FAULTS
from nbkit.simulated.faults.fault import Fault
from nbkit.simulated.faults.planted import PlantedFault, run_spoilt


class Plan:
    """Holds faults that act together: those of a device, or of one block, which adds to what held before it."""

    def __init__(self, faults: Iterable[Fault] = (), parent: "Plan | None" = None) -> None:
        self.own = [PlantedFault(fault) for fault in _checked(faults)]
        self.all: list[PlantedFault] = [*self.own, *(parent.all if parent is not None else ())]
        self.parent = parent
        self.seen: set[str] = set()
        self._runners: dict[Any, Callable[..., Any]] = {}

    def runner(self, func: Any) -> Callable[..., Any]:
        """Returns what runs `func`: itself, or the faults that name it."""
        run = self._runners.get(func)
        if run is None:
            name = str(func)
            self._note(name)
            run = self._runners[func] = self._choose(func, name)
        return run

    def _note(self, name: str) -> None:
        self.seen.add(name)
        if self.parent is not None:
            self.parent._note(name)

    def _choose(self, func: Any, name: str) -> Callable[..., Any]:
        named = [planted for planted in self.all if planted.matches(name)]
        run: Callable[..., Any] = (lambda *args, **kwargs: run_spoilt(named, func, args, kwargs)) if named else func
        return run

    def report(self) -> pd.DataFrame:
        """Returns the FAULTS frame: one row per fault, in order, with how often it was met, fired and mattered."""
        rows = [planted.row(self.seen) for planted in self.own]
        return FAULTS.frame([{"fault_id": number, **row} for number, row in enumerate(rows)])


def _checked(faults: object) -> list[Fault]:
    """Returns `faults` as a list, if it is a collection of faults; else raises OptionError."""
    checked = list(faults) if isinstance(faults, Iterable) else None
    if checked is None or not all(isinstance(fault, Fault) for fault in checked):
        raise OptionError(f"{faults!r} is no list of faults; give such as [nbkit.Fault('aten.mm')].")
    return checked


_active: list[Plan] = [Plan()]


def active_plan() -> Plan:
    """Returns the faults that hold now, in every thread: autograd runs a device's backward passes in one of its own."""
    return _active[-1]


def enter(plan: Plan) -> None:
    """Lets `plan` hold until it is left."""
    _active.append(plan)


def leave(plan: Plan) -> None:
    """Lets what held before `plan` hold again."""
    _active.remove(plan)


def replace_base(plan: Plan) -> None:
    """Lets `plan` be what holds outside all blocks."""
    _active[0] = plan
