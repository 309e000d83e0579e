"""Checks arguments of public functions before they are used."""

from numbers import Integral, Real

import pandas as pd

from nbkit.errors import OptionError, nearest
from nbkit.trace.job.job import Job
from nbkit.trace.trace import Trace


def is_number(value: object) -> bool:
    """Returns whether a value is a real number, of Python or numpy."""
    return isinstance(value, Real)


def is_whole_number(value: object) -> bool:
    """Returns whether a value is a whole number, of Python or numpy."""
    return isinstance(value, Integral)


def checked_count(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Returns `value`, if it is a whole number from `least` up, and no switch; else raises OptionError."""
    is_count = isinstance(value, Integral) and not isinstance(value, bool)
    number = int(value) if is_count else least - 1  # type: ignore[call-overload]
    if number < least or (most is not None and number > most):
        raise OptionError(
            f"{name} must be a whole number from {least} {'up' if most is None else f'to {most}'}, got {value!r}."
        )
    return number


def frame_of(trace: Trace, name: str) -> pd.DataFrame:
    """Returns a frame by its name. Raises OptionError with the names that there are."""
    if name not in trace.frames:
        raise OptionError(f"This trace has no frame {name!r}; {nearest(name, trace.frames)}")
    return trace.frames[name]


def checked_trace(value: object, name: str = "trace", *, of_ranks: bool = False) -> Trace:
    """Returns `value`, if it is a trace; else raises OptionError. `name` is what the caller calls it.

    One of several ranks, whose frames are not in memory, is such a trace only for what takes them `of_ranks`.
    """
    if isinstance(value, Job) and not of_ranks:
        raise OptionError(
            f"{name} is a job of {len(value.known)} ranks, and this looks at one process; give such as "
            f"trace.rank({value.slowest}), or ask all of them by trace.sql()."
        )
    if not isinstance(value, Trace):
        raise OptionError(
            f"{name} is expected to be a trace, and this is a {type(value).__name__}; give what a verb such as "
            f"nbkit.optrace() recorded, or nbkit.load(path)."
        )
    return value


def checked_op_id(trace: Trace, op_id: object) -> int:
    """Returns `op_id`, if it is that of an op of the trace; else raises OptionError."""
    count = len(trace.frames.get("ops", ()))
    number = int(op_id) if isinstance(op_id, Integral) else -1
    if not 0 <= number < count:
        known = f"its ops are 0 to {count - 1}" if count else "it has no ops"
        raise OptionError(f"op_id={op_id!r} is not in the trace; {known}.")
    return number


def check_step(step: object) -> None:
    """Raises OptionError for what run() cannot call."""
    if not callable(step):
        raise OptionError(
            f"run() calls the step itself, and this is a {type(step).__name__}; give it a function, such as "
            f"run(lambda: model(ids))."
        )
