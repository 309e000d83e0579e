"""Counts how often each scheduler of learning rates steps at one go, at each step of its optimizer."""

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.optim.lr_scheduler import LRScheduler

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.source import location_text, user_location
from nbkit.findings.training.facts import Schedule

# Every step of a scheduler that computes its rates by get_lr() calls it; older versions of torch have none.
INNER = "_update_lr"


class Schedules:
    """Holds the schedulers that step while installed; `passes` counts backward passes, `steps` an optimizer's steps."""

    def __init__(self, passes: Callable[[], int], steps: Counter[int]) -> None:
        self.passes, self.steps = passes, steps
        # By id of the scheduler, both types and the line; by steps of the optimizer, and by passes before.
        self.bursts: Counter[tuple[tuple[int, str, str, str | None], int, int]] = Counter()
        self.patch = Patch(LRScheduler, INNER)

    def install(self) -> None:
        if not hasattr(LRScheduler, INNER):
            return
        patch = self.patch

        def update(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            place, optimizer = user_location(sys._getframe(1)), scheduler.optimizer
            line = None if place is None else location_text(place)
            who = id(scheduler), type(scheduler).__name__, type(optimizer).__name__, line
            self.bursts[who, self.steps[id(optimizer)], self.passes()] += 1
            return patch.before(scheduler, *args, **kwargs)

        patch.install(update)

    def schedules(self) -> list[Schedule]:
        """Returns those that stepped as often at one go after each of several steps of their optimizer."""
        found = []
        for key in dict.fromkeys(who for who, _, _ in self.bursts):
            steps = [step for of, step, _ in self.bursts if of == key]
            times = {count for (of, _, _), count in self.bursts.items() if of == key}
            if len(steps) > 1 and len(times) == 1 and steps == [*range(steps[0], steps[-1] + 1)]:
                found.append(Schedule(key[1], key[2], times.pop(), len(steps), key[3]))
        return found
