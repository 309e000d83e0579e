"""opbisect is a function and no magic: its trace shows culprits and trials above the ops of the first run."""

from collections.abc import Mapping
from typing import Any

from nbkit import units
from nbkit.schema import TRIALS
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Verb
from nbkit.views.ops_view import led_by
from nbkit.views.sections.section import Section, and_more, columns

CULPRITS = columns("op, call: id, phase: phase, module, source")
TRIED = columns("trial: id, calls replaced: count, result, stage, time: time")
RESULTS = {True: "passes", False: "fails"}


def bisection_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the verdict with the culprits, and the trials; none without trials."""
    trials = TRIALS.check(trace.frames.get("trials", TRIALS.frame()))
    if not len(trials):
        return []
    culprits = trace.meta.get("culprits", [])
    rows = [_culprit(culprit) for culprit in culprits[:count]]
    caption = " ".join(filter(None, (str(trace.meta.get("verdict", "")), and_more(len(culprits), count))))
    tried = [
        (row.trial, row.calls, RESULTS[bool(row.passed)], row.stage, row.time_us)
        for row in trials.head(count).itertuples()
    ]
    found = f"Culprits: {units.counted(len(culprits), 'call')}" if culprits else "Culprits: none found"
    return [
        Section(found, CULPRITS, rows, caption),
        Section("Trials", TRIED, tried, and_more(len(trials), count)),
    ]


def _culprit(culprit: Mapping[str, Any]) -> list[object]:
    return [culprit.get(name) for name in ("op", "call", "phase", "module", "source")]


OPBISECT = Verb("opbisect", view=led_by(bisection_sections))
