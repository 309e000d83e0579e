"""Simulates an accelerator on any laptop, whose ops go wrong in chosen ways."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pandas as pd
import torch
from torch import nn

from nbkit.simulated.backend import register_backend
from nbkit.simulated.engine import prepare_engine
from nbkit.simulated.factories import register_kernels
from nbkit.simulated.faults.fault import Fault
from nbkit.simulated.faults.plan import Plan, active_plan, enter, leave, replace_base
from nbkit.simulated.tensor import SimulatedTensor
from nbkit.trace.device_setups import register_setup

IMPORT = "import nbkit"
# Conditions that were met, and that the op alone would not meet again.
CONDITIONS = {"phase": None, "min_numel": 0, "nth_call": None, "where": None}
# How torch's message begins where it cannot swap a parameter; the parameter's name follows.
REFUSAL = "_apply(): Couldn't swap "


class SimulatedDevice:
    """Simulates the accelerator of this process, with the faults that hold on it from now on.

    `torch_device` goes wherever torch takes a device; so does the text "sim", or another `name`. The values are those
    of torch's CPU kernels, to the bit, but for the faults; random numbers come from the CPU's generator. A process has
    one simulated device, and keeps it: making it again replaces its faults. Raises OptionError where torch cannot
    have it: in versions without backends in Python, and next to a real device of that sort.

        device = nbkit.SimulatedDevice([nbkit.Fault("aten.native_layer_norm", "wrong_epsilon")])
        model.to(device.torch_device)
        device.report()
    """

    def __init__(self, faults: Iterable[Fault] = (), name: str = "sim") -> None:
        is_new = register_backend(name)
        self.torch_device = torch.device(name, 0)
        if is_new:
            register_kernels(self.torch_device)
            keep_parameters_when_moved()
            prepare_engine(self.torch_device)
            register_setup(name, watch_faults)
        self._plan = Plan(faults)
        replace_base(self._plan)

    def __repr__(self) -> str:
        return f"SimulatedDevice({[planted.fault for planted in self._plan.own]!r}, name={self.torch_device.type!r})"

    def report(self) -> pd.DataFrame:
        """Returns a FAULTS frame of the device's faults: how often each fired, or why it did not."""
        return self._plan.report()

    @contextmanager
    def planted(self, *faults: Fault) -> Iterator[Plan]:
        """Plants faults for the block, before earlier ones; yields an object whose `.report()` tells of them."""
        plan = Plan(faults, active_plan())
        enter(plan)
        try:
            yield plan
        finally:
            leave(plan)


def keep_parameters_when_moved() -> None:
    """Makes a module with parameters on a simulated device swap their content when it is converted.

    torch would make new parameters on the way back to the CPU, which optimizers and tied modules do not know. It has a
    flag for swapping instead, which is on only while such a module is converted.
    """
    nn.Module._apply = _swapping(nn.Module._apply)  # type: ignore[method-assign]


def _swapping(original: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    @wraps(original)
    def _apply(self: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        before = torch.__future__.get_swap_module_params_on_conversion()
        if any(isinstance(parameter, SimulatedTensor) for parameter in self.parameters()):
            torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            return original(self, *args, **kwargs)
        except RuntimeError as error:
            if before or not str(error).startswith(REFUSAL):
                raise
            raise RuntimeError(
                f"The module could not be moved whole, as {str(error).removeprefix(REFUSAL)} is in use: by a graph "
                f"that is alive, or by a recorder. Let go of the model's results (or detach() them) and move it "
                f"again, or move a copy: copy.deepcopy(model)."
            ) from error
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    return _apply


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
