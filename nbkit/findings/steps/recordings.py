"""Puts the findings of several recordings of a script's steps together."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from nbkit.findings.bad_values import never_scaled
from nbkit.findings.causes import read_evidence
from nbkit.findings.finding import Finding, findings_frame
from nbkit.schema import FINDINGS

# What makes two findings one: of several steps the first stands for all.
SAME = ["rule", "op", "parameter", "module", "phase", "source"]


@dataclass
class RecordedSteps:
    """Describes a recording of some steps: their numbers, and where each begins in it, in us as ops.start_us.

    `others` are findings about these steps from elsewhere.
    """

    name: str
    findings: pd.DataFrame
    ops: pd.DataFrame
    steps: Sequence[int]
    begins: Sequence[float] = ()
    others: list[Finding] = field(default_factory=list)


def findings_of_steps(recorded: Iterable[RecordedSteps], about_steps: Sequence[Finding]) -> pd.DataFrame:
    """Returns the findings of all recordings, each once, with the numbers of the script's steps.

    The op_ids of the first recording stay; of others the evidence names the recording that they belong to.
    """
    parts = [findings_frame(about_steps)]
    for number, one in enumerate(recorded):
        findings = one.findings.assign(step=_steps(one))
        if number:
            findings = findings.assign(
                op_id=pd.Series(pd.NA, findings.index, "Int64"),
                evidence=[json.dumps({"recording": one.name, **read_evidence(text)}) for text in findings["evidence"]],
            )
        parts += [findings_frame(one.others), findings]
    together = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    found = FINDINGS.check(together[~together.duplicated(SAME)].reset_index(drop=True))
    return never_scaled(found) if any(one.rule == "skipped_step" for one in about_steps) else found


def _steps(recorded: RecordedSteps) -> np.ndarray:
    """Returns the step of each finding: that of its first op; of one without an op the first of the recording."""
    first = recorded.steps[0] if recorded.steps else 0
    steps = np.full(len(recorded.findings), first, dtype=np.int64)
    if len(recorded.begins) and "start_us" in recorded.ops:
        has_op = recorded.findings["op_id"].notna().to_numpy(bool)
        starts = recorded.ops["start_us"].to_numpy()[recorded.findings["op_id"][has_op].to_numpy(np.int64)]
        at = np.searchsorted(recorded.begins, starts, side="right") - 1
        steps[has_op] = np.asarray(recorded.steps)[np.clip(at, 0, None)]
    return steps
