"""Sets up the simulated device of this test process, without faults before and after each test."""

from collections.abc import Iterator

import pytest

import nbkit
from tests.support.simulated import simulated_device


@pytest.fixture(autouse=True)
def device() -> Iterator[nbkit.SimulatedDevice]:
    yield simulated_device()
    simulated_device()
