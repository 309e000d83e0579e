"""Runs a step and its check again and again from the same state, and keeps a row for each trial."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from statistics import fmean
from time import perf_counter_ns
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.capture.operators.bisect.chosen import Key, in_call_numbers
from nbkit.capture.operators.bisect.kept_state import KeptState
from nbkit.capture.watch.reached import UNSEEN
from nbkit.errors import NbkitError, first_line
from nbkit.schema import TRIALS

# Opens what the step runs in, given the keys of the calls that are to run otherwise.
Opening = Callable[[frozenset[Key]], AbstractContextManager[Any]]


class Trials:
    """Runs `step()` under what `opening` gives for a set of calls, and asks `check` about its result."""

    def __init__(
        self, step: Callable[[], Any], check: Callable[[Any], Any], state: KeptState, opening: Opening
    ) -> None:
        self.step, self.check, self.state, self.opening = step, check, state, opening
        self.rows: list[dict[str, Any]] = []
        self.known: dict[frozenset[Key], bool] = {}
        self.sought = self.most = 0  # the how many-th culprit is looked for; trials in all if it is the last

    def seeks(self, number: int, most: int) -> None:
        """Notes that a search for one more culprit begins, which takes so many trials at the most, and one confirms."""
        self.sought, self.most = number, len(self.rows) + most + 1

    def passes(self, stage: str, chosen: frozenset[Key]) -> bool:
        """Returns whether the step is right with these calls run otherwise; a set is tried once."""
        if chosen not in self.known:
            self.known[chosen] = self.run(stage, chosen, self.opening(chosen))
        return self.known[chosen]

    def run(self, stage: str, chosen: frozenset[Key], context: AbstractContextManager[Any]) -> bool:
        """Runs one trial inside `context`, from the state that was kept."""
        self.state.restore()
        started = perf_counter_ns()
        passed, message = self._tried(context)
        row = {
            "trial": len(self.rows),
            "stage": stage,
            "calls": len(chosen),
            "chosen": json.dumps(in_call_numbers(chosen)),
            "passed": passed,
            "time_us": (perf_counter_ns() - started) / 1e3,
            "message": message,
        }
        self.rows.append(row)
        return passed

    def _tried(self, context: AbstractContextManager[Any]) -> tuple[bool, str | None]:
        try:
            with self.state.thread.put_back(), context:
                result = self.step()
        except NbkitError:
            raise
        except Exception as error:
            return False, f"the step raised {type(error).__name__}: {first_line(error)}"
        try:
            return bool(self.check(result)), None
        except AssertionError as error:
            return False, f"the check: {first_line(error)}" if str(error) else None

    def not_put_back(self) -> str:
        """Returns the sentence on what each trial found otherwise; empty if nothing is known, and of one trial."""
        reached = self.state.reached
        what = [*self.state.thread.missing, *reached.one_way, *([] if reached.is_whole else [UNSEEN])]
        is_said = what and len(self.rows) > 1
        return f"Each trial is another run: {' and '.join(what)} could not be put back. " if is_said else ""

    def progress(self) -> str:
        """Returns what the line of progress says; another thread asks."""
        told = f"opbisect: {units.counted(len(self.rows), 'trial')}"
        if self.most > len(self.rows):
            culprits = f"{self.sought} {'call is' if self.sought == 1 else 'calls are'}"
            return f"{told}, at most {self.most - len(self.rows)} more if {culprits} at fault"
        last = f", the last one with {units.counted(self.rows[-1]['calls'], 'call')}" if self.rows else ""
        return f"{told}{last}"

    def done(self) -> float | None:
        """Returns which part of the time has passed if all these trials run, as long as those after the first one."""
        times = [row["time_us"] for row in self.rows]
        if len(times) < 2 or not self.most > len(times):
            return None
        left = (self.most - len(times)) * fmean(times[1:])
        return float(sum(times) / (sum(times) + left))

    def frame(self) -> pd.DataFrame:
        """Returns the frame `trials`."""
        return TRIALS.frame(self.rows)
