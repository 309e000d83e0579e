"""The simulated device, where torch has what it needs."""

from collections.abc import Sequence

import pytest

import nbkit
from nbkit.compat.torch_versions import setup_of_backends_in_python

needs_simulated_device = pytest.mark.skipif(
    setup_of_backends_in_python() is None, reason="the simulated device needs torch 2.11"
)


def simulated_device(faults: Sequence[nbkit.Fault] = ()) -> nbkit.SimulatedDevice:
    """Returns a simulated device, or skips the test."""
    if setup_of_backends_in_python() is None:
        pytest.skip("the simulated device needs torch 2.11")
    return nbkit.SimulatedDevice(faults)
