"""What recording an event with Kineto costs: an estimate from a few ops with and without it."""

from functools import cache
from time import perf_counter_ns

import torch

from nbkit.capture.profiler.kineto import Kineto, KinetoOptions

ROUNDS, REPEATS = 5, 50


@cache
def event_cost_us(options: KinetoOptions) -> float:
    """Microseconds that recording adds per event, measured once per process; the fastest of the rounds.

    The first use of Kineto in a process takes far longer than later ones: this is that use. It draws no random numbers.
    """
    bare = min(_calls_us() for _ in range(ROUNDS))
    traced, events = [], 1
    for _ in range(ROUNDS):
        kineto = Kineto(options)
        kineto.start()
        try:
            traced.append(_calls_us())
        finally:
            events = max(len(kineto.stop().events()), 1)
    return max(min(traced) - bare, 0.0) / events


def _calls_us() -> float:
    x, y = torch.ones(8, 8), torch.ones(8, 8)
    with torch.no_grad():
        start = perf_counter_ns()
        for _ in range(REPEATS):
            torch.add(torch.mm(x.t(), torch.mul(x, y)).view(64), 1.0).sum()
        return (perf_counter_ns() - start) / 1e3
