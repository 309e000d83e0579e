"""Simulates an accelerator: real `tensor.device`, computed on the CPU, with faults that can be planted per op."""

from nbkit.simulated.device import SimulatedDevice
from nbkit.simulated.faults.fault import Fault
from nbkit.simulated.faults.kinds import KINDS

# What each kind of fault does, by its name.
FAULT_KINDS = {name: kind.meaning for name, kind in KINDS.items()}

__all__ = ["FAULT_KINDS", "Fault", "SimulatedDevice"]
