"""Notes where optimizers are made while a recording runs, and which of them step parameters that another one did."""

import sys
from typing import Any

from torch.optim import Optimizer

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.source import code_text, location_text, user_location
from nbkit.findings.training.facts import Made

# Settings of what remembers earlier gradients; a momentum of 0 does not.
MEMORY = ("betas", "rho", "alpha")


class Makings:
    """Holds the optimizers that are made while installed, and step."""

    def __init__(self) -> None:
        self.serial = 0
        self.lines: dict[int, tuple[int, str | None, str | None]] = {}  # by id, with a number that is not used again
        self.noted: dict[int, Made] = {}  # by that number, in the order of first steps
        self.last: dict[frozenset[int], int] = {}  # by what is updated: the number of the one that stepped last
        self.patch = Patch(Optimizer, "__init__")

    def install(self) -> None:
        patch, note = self.patch, self._note

        def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            note(optimizer, user_location(sys._getframe(1)))
            patch.before(optimizer, *args, **kwargs)

        patch.install(made)

    def _note(self, optimizer: Any, place: Any) -> None:
        self.serial += 1
        lines = (None, None) if place is None else (location_text(place), code_text(place))
        self.lines[id(optimizer)] = (self.serial, *lines)

    def stepped(self, optimizer: Any, updated: frozenset[int], has_closure: bool) -> None:
        """Notes a step of what was made here; `updated` are numbers of the parameters, which live on."""
        number, source, text = self.lines.get(id(optimizer), (0, None, None))
        before = self.last.get(updated, number)
        self.last[updated] = number
        if not number or not updated:
            return
        defaults = getattr(optimizer, "defaults", {})
        remembers = bool(defaults.get("momentum")) or any(name in defaults for name in MEMORY)
        now = self.noted.get(number)
        if now is None:
            now = Made(type(optimizer).__name__, source, text, updated, remembers=remembers and not has_closure)
        # One that takes turns with another one goes on with what it remembers.
        is_back = before != number and now.steps > 0
        self.noted[number] = now._replace(steps=now.steps + 1, remembers=now.remembers and not is_back)
