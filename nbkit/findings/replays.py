"""Makes findings of captured calls that do not repeat what they did."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbkit.findings.finding import PLACE, Finding, at_ops, findings_frame
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema.message import Message, with_values

ADVICE = (
    "Run the call again with repeats, and with threads and device as they were: a result that changes from run to run "
    "is the kernel's; one that is always this one comes from what differs between the two places (torch, CPU, device)."
)


def replay_findings(diffs: pd.DataFrame, ops: pd.DataFrame) -> pd.DataFrame:
    """Returns a finding for each op, module and line whose replayed results are not the captured ones."""
    at = np.flatnonzero(~diffs["status"].isin(HARMLESS))
    rows = diffs.iloc[at].assign(row=at)
    rows["source"] = ops["source"].to_numpy(object)[rows["op_id"].to_numpy()]
    findings = []
    for _, alike in rows.groupby(["status", "role", "position", *PLACE], sort=False, dropna=False):
        first = alike.iloc[0]
        finding = Finding(
            rule=first["status"],
            severity="error",
            message=Message(
                f"{first['role']} {first['position']} is not what it was in the step: ",
                with_values(str(first["message"]), first["message_values"]),
            ),
            advice=ADVICE,
            evidence=evidence_of(alike),
        )
        findings.append(at_ops(finding, ops, alike["op_id"].tolist(), {}))
    return findings_frame(findings)


def evidence_of(rows: pd.DataFrame) -> Mapping[str, object]:
    """Returns where the rows are in `diffs`, and how far off the first one is, as far as that was measured."""
    measured = ("noise_ratio", "max_abs_error", "max_ulp", "mismatch_count")
    known = {name: rows[name].iloc[0] for name in measured if not pd.isna(rows[name].iloc[0])}
    return {"diffs_rows": rows["row"].tolist(), **known}
