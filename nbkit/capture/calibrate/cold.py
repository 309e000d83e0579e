"""Measures by how much a small call takes longer after one that has moved many bytes through the caches."""

from collections.abc import Callable
from statistics import median
from time import perf_counter_ns

import torch

from nbkit.capture.calibrate.clock import Clock

# Bytes that the call before moves: from what the nearest caches hold to what no cache holds.
MOVED = (2**16, 2**19, 2**20, 2**21, 2**22, 2**23, 2**24, 2**25, 2**26)
REPEATS = 31


def cold_times_us(clock: Clock, largest_bytes: int = MOVED[-1]) -> list[tuple[float, float]]:
    """Returns pairs of bytes that a call moved, and the microseconds that a view takes longer right after it.

    The view is made by a method, which needs less of Python than a call of an op. An accelerator launches from a host
    whose caches its ops do not pass through: the list is empty.
    """
    if not clock.is_cpu:
        return []
    look = torch.zeros(8, 8).t
    warm, found = _median_us(look, None), [(0.0, 0.0)]
    for moved in MOVED:
        if moved <= largest_bytes:
            spent = torch.zeros(moved // 8), torch.zeros(moved // 8)
            # What is measured is noisy, and what is emptied more takes no less.
            found.append((float(moved), max(_median_us(look, spent) - warm, found[-1][1])))
    return found


def _median_us(look: Callable[[], object], spent: tuple[torch.Tensor, torch.Tensor] | None) -> float:
    times = []
    for _ in range(REPEATS):
        if spent is not None:
            spent[0].copy_(spent[1])
        start = perf_counter_ns()
        look()
        times.append(perf_counter_ns() - start)
    return median(times) / 1e3
