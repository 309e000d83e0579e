"""Times calls: on the CPU by its clock, on an accelerator by events of its stream, while it is kept busy."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from time import perf_counter, perf_counter_ns, thread_time_ns

import torch

# Calls on tensors of their own take turns, so that together they pass through no nearby cache: in a step, too, most
# large tensors were used last long before, and small ones just now.
COLD_BYTES, MOST_COPIES = 3 * 2**24, 16
# Caches of accelerators are larger.
COLD_BYTES_OF_DEVICE = 2**28
# What keeps an accelerator busy until calls are launched: products of matrices of this side, and the time of a launch.
BUSY, LAUNCH_US = 2_048, 30.0
# A sample lasts so long at least, or the clock counts with it; and not much longer.
SAMPLE_US, LONG_US = 100.0, 10_000.0
SAMPLES = 3
# Of what the clock of a device cannot tell from nothing, such as views.
LEAST_US = 0.01
Call = Callable[[], object]


class Clock:
    """Times calls on one device; the shortest sample counts, since whatever else runs only adds."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.is_cpu = device.type == "cpu"
        # A single thread has a clock of its own, which other processes do not disturb.
        self.now = thread_time_ns if self.is_cpu and torch.get_num_threads() == 1 else perf_counter_ns
        self.cold_bytes = COLD_BYTES if self.is_cpu else COLD_BYTES_OF_DEVICE
        if not self.is_cpu:
            self.busy = torch.ones(BUSY, BUSY, device=device)
            self.busy_us = min(
                self._span([partial(torch.mm, self.busy, self.busy)] * 4, deque(maxlen=1)) for _ in "123"
            )

    def time_us(self, make: Callable[[], Call], moved_bytes: int, seconds: float) -> float:
        """Returns the microseconds of a call that `make` returns: the least of samples, which take about `seconds`."""
        call = make()
        alive: deque[object] = deque([call()], 1)
        single = max(self.sample([call], alive), 0.1)
        copies = max(1, min(MOST_COPIES, self.cold_bytes // max(1, moved_bytes), round(LONG_US / single)))
        calls = [call, *(make() for _ in range(copies - 1))]
        alive = deque([again() for again in calls], copies)
        rounds = max(1, min(20, round(SAMPLE_US / (single * copies))))
        end = perf_counter() + seconds
        times: list[float] = []
        while perf_counter() < end or len(times) < SAMPLES:
            times.append(self.sample(calls * rounds, alive) / (copies * rounds))
        return min(times)

    def sample(self, calls: Sequence[Call], alive: "deque[object]") -> float:
        """Returns the microseconds of calls in a row, whose results replace those in `alive`."""
        if not self.is_cpu:
            return self._on_device(calls, alive)
        start = self.now()
        for call in calls:
            alive.append(call())
        return (self.now() - start) / 1e3

    def _on_device(self, calls: Sequence[Call], alive: "deque[object]") -> float:
        """Returns what the device takes for calls that wait in its queue: launching them takes longer than most run."""
        for _ in range(ceil(4 * LAUNCH_US * len(calls) / self.busy_us)):
            torch.mm(self.busy, self.busy)
        return max(self._span(calls, alive), LEAST_US)

    def _span(self, calls: Sequence[Call], alive: "deque[object]") -> float:
        first, last = (torch.Event(self.device, enable_timing=True) for _ in range(2))
        first.record()
        for call in calls:
            alive.append(call())
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) * 1e3
