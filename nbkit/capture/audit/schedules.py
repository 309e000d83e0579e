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
        self.met: dict[int, tuple[Any, str | None]] = {}  # by id: the scheduler, and its line
        self.bursts: Counter[tuple[int, int, int]] = Counter()  # by id, steps of the optimizer, and passes before
        self.patch = Patch(LRScheduler, INNER)

    def install(self) -> None:
        if not hasattr(LRScheduler, INNER):
            return
        patch = self.patch

        def update(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            place = user_location(sys._getframe(1))
            self.met.setdefault(id(scheduler), (scheduler, place and location_text(place)))
            self.bursts[id(scheduler), self.steps[id(scheduler.optimizer)], self.passes()] += 1
            return patch.before(scheduler, *args, **kwargs)

        patch.install(update)

    def schedules(self) -> list[Schedule]:
        """Returns those that stepped as often at one go after each of several steps of their optimizer."""
        found = []
        for key, (scheduler, source) in self.met.items():
            steps = [step for of, step, _ in self.bursts if of == key]
            times = {count for (of, _, _), count in self.bursts.items() if of == key}
            if len(steps) > 1 and len(times) == 1 and steps == [*range(steps[0], steps[-1] + 1)]:
                names = type(scheduler).__name__, type(scheduler.optimizer).__name__
                found.append(Schedule(*names, times.pop(), len(steps), source))
        return found
