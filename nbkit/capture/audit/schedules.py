"""Counts how often each scheduler of learning rates steps at one go, at each step of its optimizer."""

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, LRScheduler, ReduceLROnPlateau

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.source import location_text, user_location
from nbkit.findings.training.facts import Schedule

# What each step of a scheduler calls, and what comes too early where it is called too often. Those with no step() of
# their own call _update_lr(); older versions of torch have none.
METHODS = (
    (LRScheduler, "_update_lr", "its schedule is over after 1 / {} of its length"),
    (CosineAnnealingWarmRestarts, "step", "it restarts after 1 / {} of its T_0"),
    (ReduceLROnPlateau, "step", "it lowers the rate after 1 / {} of its patience"),
)


class Schedules:
    """Holds the schedulers that step while installed; `passes` counts backward passes, `steps` an optimizer's steps."""

    def __init__(self, passes: Callable[[], int], steps: Counter[int]) -> None:
        self.passes, self.steps = passes, steps
        # By id of the scheduler, its type, what comes early, type of the optimizer and the line; by steps of the
        # optimizer, and by passes before.
        self.bursts: Counter[tuple[tuple[int, str, str, str, str | None], int, int]] = Counter()
        self.patches = [(Patch(kind, name), early) for kind, name, early in METHODS if hasattr(kind, name)]

    def install(self) -> None:
        for patch, early in self.patches:
            patch.install(self._counting(patch, early))

    def remove(self) -> None:
        for patch, _ in self.patches:
            patch.remove()

    def _counting(self, patch: Patch, early: str) -> Callable[..., Any]:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            place, optimizer = user_location(sys._getframe(1)), scheduler.optimizer
            line = None if place is None else location_text(place)
            who = id(scheduler), type(scheduler).__name__, early, type(optimizer).__name__, line
            # One that is told its epoch is where that says, however often it is told.
            is_told = any(value is not None for value in (*args, *kwargs.values()))
            if patch.holder is not CosineAnnealingWarmRestarts or not is_told:
                self.bursts[who, self.steps[id(optimizer)], self.passes()] += 1
            return patch.before(scheduler, *args, **kwargs)

        return step

    def schedules(self) -> list[Schedule]:
        """Returns those that stepped as often at one go after each of several steps of their optimizer."""
        found = []
        for key in dict.fromkeys(who for who, _, _ in self.bursts):
            steps = [step for of, step, _ in self.bursts if of == key]
            times = {count for (of, _, _), count in self.bursts.items() if of == key}
            if len(steps) > 1 and len(times) == 1 and steps == [*range(steps[0], steps[-1] + 1)]:
                found.append(Schedule(*key[1:4], times.pop(), len(steps), key[4]))
        return found
