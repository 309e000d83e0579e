"""Puts the findings of several recordings of a script's steps together."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from nbkit.findings.bad_values import never_scaled
from nbkit.findings.causes import OF_STEP, ORIGINS, read_evidence
from nbkit.findings.finding import Finding, findings_frame
from nbkit.schema import FINDINGS
from nbkit.schema.findings import ANOTHER_RUN

NOT_NAMED = (
    "No step that was run again shows the op where it begins. Record the step as it runs: `python -m nbkit run --verb "
    "opcheck --step ...`."
)
# What makes two findings one: of several steps the first stands for all.
SAME = ["rule", "op", "parameter", "module", "phase", "source"]


@dataclass
class RecordedSteps:
    """Describes a recording of some steps: their numbers, and where each begins in it, in us as ops.start_us.

    `others` are findings about these steps from elsewhere. `is_another` says that the steps were not the same in it.
    """

    name: str
    findings: pd.DataFrame
    ops: pd.DataFrame
    steps: Sequence[int]
    begins: Sequence[float] = ()
    others: list[Finding] = field(default_factory=list)
    is_another: bool = False


def findings_of_steps(recorded: Iterable[RecordedSteps], about_steps: Sequence[Finding]) -> pd.DataFrame:
    """Returns the findings of all recordings, each once, with the numbers of the script's steps.

    The op_ids of the first recording stay; of others the evidence names the recording that they belong to.
    """
    recorded = [*recorded]
    parts = [_with_advice(findings_frame(about_steps), recorded)]
    for number, one in enumerate(recorded):
        findings = one.findings.assign(step=ANOTHER_RUN if one.is_another else _steps(one))
        if number:
            findings = findings.assign(
                op_id=pd.Series(pd.NA, findings.index, "Int64"),
                evidence=[json.dumps({"recording": one.name, **read_evidence(text)}) for text in findings["evidence"]],
            )
        parts += [findings_frame(one.others), findings]
    together = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    found = FINDINGS.check(together[~together.duplicated(SAME)].reset_index(drop=True))
    return never_scaled(found) if any(one.rule == "skipped_step" for one in about_steps) else found


def _with_advice(findings: pd.DataFrame, recorded: Sequence[RecordedSteps]) -> pd.DataFrame:
    """Returns findings about steps that point to no finding of an op where there is none of those steps."""
    named = set[int]()
    for one in recorded:
        named |= set() if one.is_another else {*_steps(one)[one.findings["rule"].isin(ORIGINS).to_numpy(bool)].tolist()}
    is_of_step = findings["rule"].isin(OF_STEP) & ~findings["step"].isin(named)
    is_unnamed = is_of_step | ((findings["rule"] == "skipped_step") & (not named))
    return findings.assign(advice=findings["advice"].mask(is_unnamed, NOT_NAMED))


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
