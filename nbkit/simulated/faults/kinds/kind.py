"""Defines one way in which an op can go wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbkit.errors import OptionError
from nbkit.simulated.call import Call, Results
from nbkit.trace.checks import is_number

# Wrong results in place of call.results, as many; None where this call gives none. Raises NotApplicableError. The third
# argument is what this fault may keep from call to call.
Spoil = Callable[[Call, Any, dict[Any, Any]], Results | None]


@dataclass(frozen=True)
class Kind:
    """Describes a kind of fault: its name, what it does, and what its size measures (None: it has no size).

    `needs` is what a call must have to be spoiled, of kinds that spare others; `remembers` is True for one that has to
    see the calls in which it does not fire.
    """

    name: str
    spoil: Spoil
    meaning: str
    size_meaning: str | None = None
    default_size: float | None = None
    smallest: float = 0.0
    largest: float = float("inf")
    needs: str | None = None
    remembers: bool = False

    def check_size(self, size: float | None) -> None:
        """Raises OptionError unless the kind has a size and this is one; None is always good."""
        if size is None:
            return
        if self.size_meaning is None:
            raise OptionError(f"kind={self.name!r} has no size; leave size={size!r} out.")
        if not is_number(size) or not self.smallest <= size <= self.largest:
            raise OptionError(
                f"size={size!r} is not between {self.smallest:g} and {self.largest:g}; for kind={self.name!r} it is "
                f"{self.size_meaning}."
            )
