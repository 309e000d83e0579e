"""Which calls are compared: by phase, sample, size and name."""

from dataclasses import dataclass

from nbkit.capture.frames.selection import Selection
from nbkit.capture.scope.filters import checked_phases
from nbkit.errors import OptionError
from nbkit.trace.checks import is_number


@dataclass(frozen=True)
class Scope:
    """Checked options of opdiff."""

    selection: Selection
    phases: frozenset[str]
    every: int  # one of so many calls of an op is compared
    max_bytes: int | None
    threshold: float


def scope(selection: Selection, phases: object, sample: float, max_bytes: int | None, threshold: float) -> Scope:
    """The options, checked. Raises OptionError."""
    if max_bytes is not None and not (is_number(max_bytes) and max_bytes > 0):
        raise OptionError(
            f"max_bytes must be a number of bytes above 0, got {max_bytes!r}; give one, or None for no limit."
        )
    if not (is_number(threshold) and threshold > 0):
        raise OptionError(f"threshold must be a number above 0, got {threshold!r}; give one, such as 8.")
    return Scope(selection, checked_phases(phases), _every(sample), max_bytes, threshold)


def _every(sample: float) -> int:
    if isinstance(sample, int) and sample >= 1:
        return sample
    if is_number(sample) and 0 < sample < 1:
        return max(round(1 / sample), 1)
    raise OptionError(f"sample={sample!r} is neither a whole number n (every n-th call of an op) nor a share below 1.")
