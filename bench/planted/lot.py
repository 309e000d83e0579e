"""Lists the faults planted in a step: each kind in ops whose result it changes, drawn by lot, each in a random call."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import nbkit
from bench.planted.steps import Step
from nbkit.simulated.call import Call, NotApplicableError
from nbkit.simulated.faults.kinds import KINDS
from nbkit.simulated.faults.plan import Plan, enter, leave
from nbkit.simulated.faults.planted import same_bits

# Beside a kind's own size: one that bfloat16 can show, and one as small as TF32 or a fast exp makes it.
SIZES: dict[str, tuple[float, ...]] = {
    "relative_error": (1e-2, 0.25, 1e-4),
    "low_precision_accumulation": (7, 3, 10),
    "wrong_epsilon": (1000.0, 1e6),
    "approximate_exp": (2, 1, 3),
    "truncated_mantissa": (7, 2, 14),
    "approximate_reciprocal": (12, 3, 7),
    "saturated_result": (2.0, 0.5),
    "flushed_small": (1e-3, 0.25),
    "flipped_bit": (1, 3, 12),
    "added_noise": (1e-2, 0.25, 1e-4),
    "constant_offset": (1e-2, 0.25, 1e-4),
    "dropped_tile": (1, 4),
    "wrong_scale": (1.1, 2.0),
    "dropped_terms": (1, 4),
    "repeated_terms": (1, 4),
    "half_precision_blocks": (16, 1),
    "narrow_draws": (0.8, 0.25),
    "wrong_rate": (0.25, 1.0),
}
# What they change is right within rounding, which opdiff has to allow; bench/stable.py plants them.
OTHER_ORDERS = ("unordered_sum", "split_sum", "tail_rows", "thread_sum")
Key = tuple[str, str, float | None]  # op, kind, size


def faults_of(step: Step, seed: int, every_size: bool = False, ops_per_kind: int | None = None) -> list[nbkit.Fault]:
    """Returns one fault for each op of the step and each kind that can change its bits; by lot its call, and its size.

    `every_size` makes one fault of each size instead; `ops_per_kind` draws so many of the ops that a kind can befall.
    Ops that only run inside another one (`fill_` in `ones`) have no row of their own in a trace and are left to that.
    """
    probe, calls = Probe(), device_calls(step)
    enter(probe)
    try:
        step.run()
    finally:
        leave(probe)
    choices = defaultdict(list)
    for op, kind, size in sorted(probe.changing, key=str):
        if probe.calls[op] == calls[op]:
            choices[(op, kind, size) if every_size else (op, kind)].append((op, kind, size))
    chosen = choices if ops_per_kind is None else _some(choices, Random(f"{seed} ops"), ops_per_kind)
    return [_drawn(Random(f"{seed} {key}"), choices[key], probe.changing) for key in chosen]


def _some(keys: Iterable[Any], lot: Random, most: int) -> list[Any]:
    """Draws keys so that no kind has more than `most`."""
    by_kind = defaultdict(list)
    for key in keys:
        by_kind[key[1]].append(key)
    return [key for ones in by_kind.values() for key in lot.sample(ones, min(most, len(ones)))]


def _drawn(lot: Random, sizes: list[Key], changing: dict[Key, list[int]]) -> nbkit.Fault:
    """Draws a size and a call, each op and kind by its own seed, as memory that nobody wrote may add or lose one."""
    key = lot.choice(sizes)
    return nbkit.Fault(*key, nth_call=lot.choice(changing[key]))


def device_calls(step: Step) -> Counter[str]:
    """Returns how often each aten op runs on the device, as a trace has it."""
    with nbkit.optrace() as trace:
        step.run()
    ops = trace.ops
    return Counter(ops["op"][(ops["level"] == "aten") & (ops["device"] == str(step.inputs[0].device))])


class Probe(Plan):
    """Plants nothing, and finds in which calls of which ops a kind of fault would change a bit."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.changing: defaultdict[Key, list[int]] = defaultdict(list)
        self.memory: defaultdict[Key, dict[Any, Any]] = defaultdict(dict)

    def runner(self, func: Any) -> Callable[..., Any]:
        """Returns what runs the op, and looks what each kind would make of it."""
        return lambda *args, **kwargs: self._run(func, args, kwargs)

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        call = Call(func, args, kwargs)
        out, op = call.run(), str(func)
        self.calls[op] += 1
        for kind, size in kinds_and_sizes():
            if self._changes(call, (op, kind, size)):
                self.changing[op, kind, size].append(self.calls[op])
        return out

    def _changes(self, call: Call, key: Key) -> bool:
        try:
            call.check_computes()
            wrong = KINDS[key[1]].spoil(call, key[2], self.memory[key])
        except (NotApplicableError, RuntimeError, TypeError, IndexError):  # the device takes them for an obstacle
            return False
        return wrong is not None and not all(map(same_bits, call.results, wrong))


def kinds_and_sizes() -> Iterator[tuple[str, float | None]]:
    """Yields every kind of fault with each of its sizes, but for those that only add up in another order."""
    for kind in (kind for kind in nbkit.FAULT_KINDS if kind not in OTHER_ORDERS):
        for size in SIZES.get(kind, (None,)):
            yield kind, size
