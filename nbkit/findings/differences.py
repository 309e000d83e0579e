"""Makes findings of the tensors that opdiff compared and found wrong."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from nbkit.divergence.milestones import off_without_fault
from nbkit.findings.finding import PLACE, Finding, at_ops, findings_frame
from nbkit.numerics.difference_patterns import pattern_text
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema.message import Message, with_values

ADVICE = {
    "mismatch": "Run the op alone: nbkit.script_of(trace, op_id) writes a script from a captured call. If the op is "
    "wrong there, too, the fault is the kernel's.",
    "failed": "Read the message: the reference could not run the op, so that nothing is known about its result.",
}
LOST = 0.5  # of the norm of a result: nothing of it is right
ADVICE_OFF = (
    "Rounding of this dtype adds up, or values underflow to 0. Compute what follows in a wider dtype; of gradients, "
    "scale the loss (torch.amp.GradScaler) or train in bfloat16."
)
MEASURED = ("role", "position", "dtype", "shape", "noise_ratio", "max_abs_error", "max_rel_error", "mismatch_count")


def difference_findings(
    diffs: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str], reference: str
) -> pd.DataFrame:
    """Returns the findings of all tensors in `diffs` that are wrong, or that could not be compared."""
    at = np.flatnonzero(~diffs["status"].isin(HARMLESS))
    rows = diffs.iloc[at].assign(row=at)
    rows["source"] = ops["source"].to_numpy(object)[rows["op_id"].to_numpy()]
    findings = []
    for _, alike in rows.groupby(["status", "role", "position", "pattern", *PLACE], sort=False, dropna=False):
        worst = alike.iloc[int(alike["noise_ratio"].fillna(np.inf).to_numpy().argmax())]
        finding = Finding(
            rule=worst["status"],
            severity="warning" if worst["status"] == "failed" else "error",
            message=_message(worst, reference),
            advice=ADVICE.get(worst["status"], ADVICE["mismatch"]),
            evidence={
                "diffs_rows": alike["row"].tolist(),
                **{name: worst[name] for name in MEASURED if not pd.isna(worst[name])},
                **pattern_of(worst),
            },
        )
        findings.append(at_ops(finding, ops, alike["op_id"].tolist(), texts))
    return findings_frame(findings)


def precision_findings(meta: Mapping[str, Any], ops: pd.DataFrame, texts: Mapping[str, str]) -> pd.DataFrame:
    """Returns the finding of a step that is off from the other run though no op is at fault; `meta` has the milestones.

    It stands at the op where half of the digits were lost.
    """
    off = off_without_fault(meta)
    if off is None:
        return findings_frame([])
    largest = meta["largest_error"]
    lost = meta["half_precision_lost_at"] or largest
    finding = Finding(
        rule="lost_precision",
        severity="warning" if off >= LOST else "hint",
        message=f"no op is at fault, but results are off from {meta['against']} by up to {off:.3g} of their norm "
        f"({largest['op']}, {largest['phase']}); half of the digits are lost here",
        advice=ADVICE_OFF,
        evidence={"total_error": off, "at_op_id": largest["op_id"], "lost_error": lost["total_error"]},
    )
    return findings_frame([at_ops(finding, ops, [lost["op_id"]], texts)])


def _message(row: pd.Series, reference: str) -> str:
    """Returns what is wrong with a tensor, in one sentence."""
    what = f"{row['role']} {row['position']}"
    if row["status"] == "failed":
        return Message(what, " could not be compared: ", with_values(str(row["message"]), row["message_values"]))
    if row["status"] != "mismatch":
        return f"{what} has another {row['status']} than on {reference}"
    distance = _distance(row, reference)
    if found := pattern_of(row):
        return f"{what} {pattern_text(found['pattern'], found['pattern_evidence'])}, and {distance}"
    return f"{what} {distance}"


def _distance(row: pd.Series, reference: str) -> str:
    """Returns the predicate that says how far off a mismatched tensor is."""
    if np.isinf(row["noise_ratio"]):
        return f"has NaN, Inf or integers where {reference} has others"
    if pd.isna(row["noise_ratio"]):
        return f"differs from {reference} by more than the tolerance that was set"
    return f"is {row['noise_ratio']:.3g} times as far from {reference} as rounding explains"


def pattern_of(row: pd.Series) -> dict[str, Any]:
    """Returns the pattern of a row of `diffs` and its evidence as data; nothing where it has none."""
    if not isinstance(row["pattern"], str):
        return {}
    return {"pattern": row["pattern"], "pattern_evidence": json.loads(row["pattern_evidence"])}
