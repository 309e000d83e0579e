"""One kernel per test module, with nbkit loaded and a tensor `x` at hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.magics.kernel import Kernel, started

ROOT = Path(__file__).parents[2]
SET_UP = """\
%load_ext nbkit
import asyncio, time, torch
x = torch.ones(3)
def fails():
    y = x * 2
    raise ValueError("no")
async def later(value):
    await asyncio.sleep(0.001)
    return value
async def several():
    for value in (x, x + 1):
        yield value
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    kernel = started(ROOT)
    try:
        assert kernel.run(SET_UP).outputs == []
        yield kernel
    finally:
        kernel.stop()
