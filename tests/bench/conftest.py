"""The simulated device of this test process, without faults before and after the tests that ask for it; one thread."""

from collections.abc import Iterator

import pytest
import torch

import nbkit


@pytest.fixture
def device() -> Iterator[nbkit.SimulatedDevice]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield nbkit.SimulatedDevice()
    nbkit.SimulatedDevice()
    torch.set_num_threads(threads)
