"""Applies all rules of a training audit."""

import pandas as pd

from nbkit.findings.dataflow.rules import dataflow_findings
from nbkit.findings.finding import findings_frame, rules_in
from nbkit.findings.training.facts import Audit
from nbkit.findings.waste.step import RecordedStep
from nbkit.schema.findings import SEVERITIES

RULES, OF_WASTE = rules_in("nbkit.findings.training"), rules_in("nbkit.findings.waste")


def audit_findings(audit: Audit) -> pd.DataFrame:
    """Returns the findings of all rules, those of the dataflow and of waste last, worst first."""
    findings = [finding for rule in RULES for finding in rule(audit)]
    findings += dataflow_findings(audit.ops, audit.tensors, audit.texts, audit.flow)
    if len(audit.ops):
        step = RecordedStep(audit.ops, audit.texts, audit.tensors, audit.parameters, audit.modes)
        waste = [finding for rule in OF_WASTE for finding in rule(step)]
        findings += sorted(waste, key=lambda finding: finding.op_id or 0)
    return findings_frame(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
