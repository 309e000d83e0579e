"""Makes findings of the calls whose replacement repairs a step."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from nbkit.findings.finding import Finding, at_ops, findings_frame

ADVICE = (
    "Run the op alone, with the inputs it has here, on the device and on the CPU. To go on meanwhile, keep this call "
    "replaced in the step, as opfallback does for an op on the CPU."
)
NONE_ADVICE = (
    "Look at what was not replaced: trace.meta['skipped'] counts it by reason; widen the filters of opbisect, or "
    "replace otherwise with by=."
)


def culprit_findings(
    culprits: Sequence[Mapping[str, Any]], ops: pd.DataFrame, texts: Mapping[str, str], ran: str
) -> pd.DataFrame:
    """Returns a finding for each culprit, given by op, module, phase, call, source and op_id (null if it has no row).

    `ran` says where, or how, it ran when the step passed.
    """
    findings = []
    for culprit in culprits:
        message = f"call {culprit['call']} of the op is at fault: with it {ran} the step passes, without it fails"
        place = {name: culprit[name] for name in ("op", "module", "phase", "source")}
        finding = Finding("culprit", "error", message, ADVICE, **place, evidence={"call": culprit["call"]})
        if culprit["op_id"] is not None:
            finding = at_ops(finding, ops, [culprit["op_id"]], texts)
        findings.append(finding)
    return findings_frame(findings)


def without_culprit(verdict: str, *, passes: bool) -> pd.DataFrame:
    """Returns the finding that says why there is no culprit; a hint where the step passes as it is."""
    if passes:
        return findings_frame([Finding("no_culprit", "hint", verdict, "Give a step for which the check fails.")])
    return findings_frame([Finding("no_culprit", "warning", verdict, NONE_ADVICE)])
