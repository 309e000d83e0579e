"""Makes findings of calls that give other bits from run to run, or other values in another batch, layout or thread."""

from collections.abc import Mapping

import pandas as pd

from nbkit.findings.finding import PLACE, Finding, Severity, at_ops, findings_frame

ADVICE = {
    "error": "Run the op alone, from the same inputs, several times; if it differs there, too, its kernel adds up in "
    "no fixed order, or reads memory that nobody has written.",
    "warning": "torch.use_deterministic_algorithms(True) chooses another kernel where there is one, and raises where "
    "there is none.",
}
FIX = "One of the two ways that it computes is wrong: run it in both by hand, keep to the right one, and report it."


def stability_findings(stability: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str]) -> pd.DataFrame:
    """Returns a finding for each op, line and module whose calls differ from run to run, or by more than rounding."""
    rows = stability[stability["run_to_run"] == "differs"]
    findings = _other_values(stability, ops, texts)
    for _, alike in rows.groupby([*PLACE], sort=False, dropna=False):
        worst = alike.iloc[int(alike["max_ulp"].to_numpy().argmax())]
        severity: Severity = "warning" if isinstance(worst["documented"], str) else "error"
        how_far = str(worst["message"]).partition(": ")[2]  # behind which check it was
        message = f"the same inputs give other bits each time: {how_far}"
        evidence = {"max_ulp": worst["max_ulp"]}
        finding = Finding("not_repeatable", severity, message, ADVICE[severity], evidence=evidence)
        findings.append(at_ops(finding, ops, alike["op_id"].tolist(), texts))
    return findings_frame(findings)


def _other_values(stability: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str]) -> list[Finding]:
    rows = stability[stability["beyond_rounding"].notna()]
    findings = []
    for _, alike in rows.groupby([*PLACE], sort=False, dropna=False):
        worst = alike.iloc[int(alike["max_ulp"].to_numpy().argmax())]
        message = f"the same numbers give other values {worst['beyond_rounding']}"
        finding = Finding("other_values", "error", message, FIX, evidence={"max_ulp": worst["max_ulp"]})
        findings.append(at_ops(finding, ops, alike["op_id"].tolist(), texts))
    return findings
