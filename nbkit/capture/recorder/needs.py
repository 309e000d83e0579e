"""Checks that what an option asks for can be seen: only torch's observer, in the built recorder, sees it."""

from typing import Any

from nbkit.capture.native.library import library
from nbkit.errors import OptionError, nearest

THREADS = ("current", "all")


def check_threads(threads: str, needs_python: Any) -> None:
    """Raises OptionError for an unknown value of `threads`, and for "all" where only a dispatch mode can record."""
    if threads not in THREADS:
        raise OptionError(f"threads={threads!r} is not known; {nearest(str(threads), THREADS)}")
    if threads == "all":
        check_observed("threads", needs_python)


def check_observed(option: str, needs_python: Any) -> None:
    """Raises OptionError where the recording is one in Python, as another option wants it or nothing else is there."""
    if needs_python:
        raise OptionError(
            f"{option} cannot be asked for together with what nbkit records in Python (values, stop); record the step "
            f"once with each."
        )
    if library() is None:
        raise OptionError(
            f"{option} needs the built recorder, and nbkit records in Python here; run nbkit.build_recorder() once, "
            f"and leave NBKIT_RECORDER unset."
        )
