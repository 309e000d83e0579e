"""What a feature is: a function that raises where the feature does not hold, and what is known to be left out of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[3] / "shared" / "data"  # the files of the tools themselves are not part of the repository
Check = Callable[[], None]


@dataclass(frozen=True)
class Feature:
    """A feature of a tool: its name, how nbkit has it, the check, and what it lacks."""

    tool: str
    name: str
    how: str
    check: Check
    lacks: str

    def tried(self) -> tuple[str, str, float]:
        """Returns `works`, `partly` or `fails`, why, and the seconds the check took."""
        start, lacks = time.perf_counter(), self.lacks
        try:
            self.check()
            verdict = "partly" if lacks else "works"
        except FileNotFoundError as error:
            verdict, lacks = "not tried", f"{error.filename} is not there"
        except Exception as error:  # whatever goes wrong is the row's answer
            verdict, lacks = "fails", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return verdict, lacks, time.perf_counter() - start


FEATURES: list[Feature] = []


def feature(tool: str, name: str, how: str, lacks: str = "") -> Callable[[Check], Check]:
    """Returns a decorator that adds the check of a feature; `lacks` says what is left out, and why."""

    def add(check: Check) -> Check:
        FEATURES.append(Feature(tool, name, how, check, lacks))
        return check

    return add
