"""Simulates an accelerator on any laptop, whose ops go wrong in chosen ways."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pandas as pd
import torch

from nbkit.simulated.backend import register_backend
from nbkit.simulated.engine import prepare_engine
from nbkit.simulated.factories import register_kernels
from nbkit.simulated.faults.fault import Fault
from nbkit.simulated.faults.plan import Plan, active_plan, enter, leave, replace_base
from nbkit.simulated.module_moves import keep_parameters_when_moved
from nbkit.simulated.setup import watch_faults
from nbkit.trace.device_setups import register_setup


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
