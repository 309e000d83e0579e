"""Lists the faults planted in a step: every kind in every op whose result it changes, each in a random call."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import nbkit
from bench.fault_steps import Step
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
}
Key = tuple[str, str, float | None]  # op, kind, size


def faults_of(step: Step, seed: int, every_size: bool = False) -> list[nbkit.Fault]:
    """Returns one fault for each op of the step and each kind that can change its bits; by lot its call, and its size.

    `every_size` makes one fault of each size instead. Ops that only run inside another one (`fill_` in `ones`) have no
    row of their own in a trace and are left to that.
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
    return [_drawn(Random(f"{seed} {key}"), sizes, probe.changing) for key, sizes in choices.items()]


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
    """Yields every kind of fault with each of its sizes."""
    for kind in nbkit.FAULT_KINDS:
        for size in SIZES.get(kind, (None,)):
            yield kind, size
