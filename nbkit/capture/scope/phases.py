"""Names the phases of a step that the verbs can be limited to."""

from nbkit.errors import OptionError, nearest
from nbkit.patterns import split_patterns

PHASES = ("forward", "backward", "optimizer", "other")
EVERY_PHASE = frozenset(PHASES)


def checked_phases(phases: object) -> frozenset[str]:
    """Returns the phases that are meant, all for None. Raises OptionError."""
    if phases is None:
        return EVERY_PHASE
    wanted = split_patterns(phases)  # type: ignore[arg-type]  # refused below if it is no text
    for phase in wanted:
        if phase not in PHASES:
            raise OptionError(f"phases={phase!r} is not known; {nearest(phase, PHASES)}")
    if not wanted:
        raise OptionError(f"phases={phases!r} names no phase; known are {', '.join(PHASES)}.")
    return frozenset(wanted)
