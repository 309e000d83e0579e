"""Applies all rules of a training audit."""

import pandas as pd

from nbkit.findings.dataflow.rules import dataflow_findings
from nbkit.findings.finding import findings_frame
from nbkit.findings.training.accumulation import accumulation_findings
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.gradients import (
    depth_gradients,
    missing_gradients,
    non_finite_gradients,
    zero_gradients,
)
from nbkit.findings.training.modes import dropout_in_eval, trained_in_eval
from nbkit.findings.training.updates import lost_updates, not_in_optimizer, skipped_steps
from nbkit.schema.findings import SEVERITIES

RULES = (
    missing_gradients,
    not_in_optimizer,
    accumulation_findings,
    non_finite_gradients,
    skipped_steps,
    lost_updates,
    zero_gradients,
    depth_gradients,
    dropout_in_eval,
    trained_in_eval,
)


def audit_findings(audit: Audit) -> pd.DataFrame:
    """Returns the findings of all rules, those of the dataflow last, worst first."""
    findings = [finding for rule in RULES for finding in rule(audit)]
    findings += dataflow_findings(audit.ops, audit.tensors, audit.texts)
    return findings_frame(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
