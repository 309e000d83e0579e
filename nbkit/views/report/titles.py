"""Titles of the traces of a report, so that two of the same run can be told apart."""

from collections.abc import Sequence

from nbkit.trace import Trace
from nbkit.views.facts import facts


def titles(traces: Sequence[Trace]) -> list[str]:
    """The title of each trace; where there are several, with its number."""
    names = [facts(trace).title for trace in traces]
    return names if len(names) == 1 else [f"{number}. {name}" for number, name in enumerate(names, 1)]
