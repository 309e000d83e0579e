"""Tracks the recordings that a thread is in, and refuses those that cannot run inside each other."""

from collections.abc import Sequence
from threading import local
from typing import Any

from nbkit.errors import OptionError

TIMING = "optime"
# What runs ops otherwise does so out of sight of what runs them again.
REPLACING, REPEATING = ("opfallback", "opcast"), ("opdiff",)
# By what cannot run inside what, the rest of the sentence that says so.
REFUSED = {
    ("opdoctor", "opdoctor"): "; the outer one looks at the step already.",
    ("opdoctor", "opcost"): ", which computes no values and has no times. Record the step once with each.",
}
_thread = local()


def running() -> list[Any]:
    """Returns the recordings that this thread is in, outermost first."""
    recordings: list[Any] = vars(_thread).setdefault("running", [])
    return recordings


def check_nesting(verb: str, around: Sequence[str] | None = None) -> None:
    """Raises OptionError where `verb` begins inside a recording whose frames, or its own, would then be wrong.

    `around` names the verbs of those recordings; by default the ones of this thread.
    """
    verbs = [recording.verb for recording in running()] if around is None else around
    repeating = next((name for name in verbs if name in REPEATING), None)
    if verb in REPLACING and repeating is not None:
        raise OptionError(
            f"{verb} cannot run inside {repeating}, which would not see what {verb} runs elsewhere. Put {repeating} "
            f"inside {verb}."
        )
    for name in verbs:
        if why := REFUSED.get((verb, name)):
            raise OptionError(f"{verb} cannot run inside {name}{why}")
    outer = next((name for name in verbs if (name == TIMING) != (verb == TIMING)), None)
    if outer is not None:
        inner = outer if verb == TIMING else verb
        raise OptionError(
            f"{verb} cannot run inside {outer}: {TIMING} would count the work of {inner} as the step's. Record the "
            f"step once with each."
        )
