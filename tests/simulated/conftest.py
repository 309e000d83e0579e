"""Sets up the simulated device of this test process, without faults before and after each test."""

from collections.abc import Iterator

import pytest

import nbkit
from nbkit.compat.torch_versions import setup_of_backends_in_python


@pytest.fixture(autouse=True)
def device() -> Iterator[nbkit.SimulatedDevice]:
    if setup_of_backends_in_python() is None:
        pytest.skip("the simulated device needs torch 2.11")
    yield nbkit.SimulatedDevice()
    nbkit.SimulatedDevice()
