"""Looks for subnormal numbers in the state of optimizers, and times an op on them beside one on normal numbers."""

import gc
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from time import perf_counter

import torch
from torch import Tensor
from torch.optim import Optimizer

from nbkit.capture.native.library import own_work
from nbkit.capture.raw.shards import local_shard
from nbkit.capture.replay.isolated import isolated, threads
from nbkit.findings.time.cases import Subnormal

# Fewer are usual, and what takes less than so many times as long is noise.
LEAST_FRACTION, LEAST_SLOWDOWN = 0.01, 2.0
MOST_ELEMENTS, ROUNDS = 1 << 18, 5
# What stands for an op, by a part of its name; none for fused kernels, which take little time.
WORKS: dict[str, Callable[[Tensor], Tensor]] = {
    "sqrt": lambda values: values.abs().sqrt(), "div": lambda values: values / 3, "mul": lambda values: values * 0.9
}  # fmt: skip


def subnormal_state(kind: str, op: str) -> Subnormal | None:
    """Returns what is subnormal in the state of the process's optimizers of a type, on the CPU, and slows an op down.

    None where little is, in one of them, and where the op is as fast with it: other CPUs, flushed numbers.
    """
    work = next((work for part, work in WORKS.items() if part in op and "_fused_" not in op), None)
    with own_work(), isolated():
        states = [_worst(one) for one in gc.get_objects() if issubclass(type(one), Optimizer) and _is(one, kind)]
        found = [state for state in states if state is not None and state[1] >= LEAST_FRACTION]
        if work is None or not found or len(found) < len(states):
            return None
        name, fraction, values = max(found, key=lambda state: state[1])
        with threads(1):  # of several, the least of a few times is still that of waiting, on a busy machine
            slow, usual = (_least_s(partial(work, one)) for one in (values, torch.ones_like(values)))
    below = torch.finfo(values.dtype).smallest_normal
    return Subnormal(name, fraction, below, slow / usual) if slow >= LEAST_SLOWDOWN * usual else None


def _least_s(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return min(times)


def _is(optimizer: Optimizer, kind: str) -> bool:
    return type(optimizer).__name__ == kind and bool(optimizer.state)


def _worst(optimizer: Optimizer) -> tuple[str, float, Tensor] | None:
    """Returns the name of the state with the largest share of subnormal numbers, the share, and some of its values.

    Of DTensors it is that of this process: what one process looks at, others may not.
    """
    parts = defaultdict(list)
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.is_cpu and value.is_floating_point() and value.dim():
                parts[name, value.dtype].append(local_shard(value).detach().reshape(-1)[:MOST_ELEMENTS])
    whole = [(name, torch.cat(values)[:MOST_ELEMENTS]) for (name, _), values in parts.items()]
    return max(((name, _fraction(values), values) for name, values in whole), key=lambda one: one[1], default=None)


def _fraction(values: Tensor) -> float:
    return float(((values != 0) & (values.abs() < torch.finfo(values.dtype).smallest_normal)).double().mean())
