"""Runs all rules of where a timed step could save time."""

from collections.abc import Mapping, Sequence

import pandas as pd

from nbkit.findings.finding import findings_frame, line_texts, rules_in
from nbkit.findings.time.cases import Look, Measure
from nbkit.findings.time.step import Forwards, TimedStep

RULES = rules_in("nbkit.findings.time")


def time_findings(
    frames: Mapping[str, pd.DataFrame],
    measure: Measure | None = None,
    *,
    is_slowed: bool = False,
    forwards: Forwards | None = None,
    look: Look | None = None,
    settings: Sequence[str] = (),
) -> pd.DataFrame:
    """Returns what takes time of a step that could be saved, in the order of its ops, from `ops` and `lines`.

    `measure` runs what could take the place of ops: what saves little is then no finding. `is_slowed` says that others
    recorded the step, whose times are then not told. `look` looks at the state of optimizers; `settings` are
    those of the process that are on.
    """
    texts = line_texts(frames.get("lines"))
    step = TimedStep(
        frames["ops"],
        texts,
        measure=measure,
        look=look,
        is_slowed=is_slowed,
        forwards=forwards or {},
        settings=settings,
    )
    found = [finding for rule in RULES for finding in rule(step)] if len(step.ops) > 1 else []
    return findings_frame(sorted(found, key=lambda finding: -1 if finding.op_id is None else finding.op_id))
