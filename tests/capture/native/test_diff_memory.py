"""What opdiff's native part needs is bounded by the largest op, and none of it is kept."""

import torch
from torch.profiler import ProfilerActivity, profile

import nbkit

BYTES = 4_000_000


def live_and_peak(calls):
    """Bytes that torch holds after opdiff and at most while it runs, above what was there before."""
    x = torch.randn(BYTES // 4, requires_grad=False).reshape(1000, -1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler, nbkit.opdiff() as trace:
        for _ in range(calls):
            x.softmax(1)
            x + 1
    assert trace.meta["recorder"] == "native"
    assert len(trace.diffs) == 2 * calls
    changes = [event.nbytes() for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = [sum(changes[:count]) for count in range(len(changes) + 1)]
    return held[-1], max(held)


def test_the_peak_does_not_grow_with_the_step():
    (first, short), (last, long) = live_and_peak(3), live_and_peak(30)
    assert first == last == 0
    # The result, the widened input and the result in float64.
    assert 5 * BYTES <= short == long < 6 * BYTES
