"""Writes how a simulated device is made again in a fresh process, with the faults that fired in one call of an op."""

from collections.abc import Callable

import torch

from nbkit.simulated.faults.fault import Fault
from nbkit.simulated.faults.plan import active_plan

IMPORT = "import nbkit"
# Conditions that were met, and that the op alone would not meet again.
CONDITIONS = {"phase": None, "min_numel": 0, "nth_call": None, "where": None}


def watch_faults() -> Callable[[], tuple[str, ...]]:
    """Returns what gives, once an op has run, lines of Python that make a device with the faults that fired."""
    faults = active_plan().all
    before = [planted.fired for planted in faults]

    def lines() -> tuple[str, ...]:
        fired = [planted.fault for planted, count in zip(faults, before, strict=True) if planted.fired > count]
        return tuple(_lines(fired))

    return lines


def _lines(faults: list[Fault]) -> list[str]:
    name = torch._C._get_privateuse1_backend_name()
    name_option = "" if name == "sim" else f", name={name!r}"
    lines = [IMPORT, "", f"# The device with the fault that made this result ({', '.join(f.kind for f in faults)})."]
    if not faults:
        return [IMPORT, "", f"nbkit.SimulatedDevice([]{name_option})"]
    for fault in faults:
        dropped = [name for name, without in CONDITIONS.items() if getattr(fault, name) != without]
        if dropped:
            lines.append(f"# Its conditions ({', '.join(dropped)}) were met in the step and are left out here.")
        if fault.remembers:
            lines.append("# It depends on the calls before, which are not here: it may not show.")
    return [*lines, f"nbkit.SimulatedDevice([{', '.join(map(_text, faults))}]{name_option})"]


def _text(fault: Fault) -> str:
    settings = {"size": fault.size, "output": fault.output}
    options = "".join(f", {name}={value!r}" for name, value in settings.items() if value is not None)
    return f"nbkit.Fault({fault.op!r}, {fault.kind!r}{options})"
