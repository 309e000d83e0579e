"""Applies all rules of a training audit."""

import pandas as pd

from nbkit.findings.dataflow.rules import dataflow_findings
from nbkit.findings.finding import findings_frame
from nbkit.findings.training.accumulation import accumulation_findings, summed_means
from nbkit.findings.training.activations import dead_units
from nbkit.findings.training.cleared import cleared_gradients, clippings
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.frozen import (
    frozen_in_optimizer,
    repeated_schedules,
    reset_parameters,
    stopped_gradients,
    zero_rates,
)
from nbkit.findings.training.gradients import (
    depth_gradients,
    missing_gradients,
    non_finite_gradients,
)
from nbkit.findings.training.kept import kept_graphs, repeated_draws
from nbkit.findings.training.modes import dropout_in_eval, trained_in_eval
from nbkit.findings.training.norms import lone_samples, norms_in_eval, static_statistics, unset_statistics
from nbkit.findings.training.untrained import untrained, unused_gradients
from nbkit.findings.training.updates import (
    lost_averages,
    lost_updates,
    not_in_optimizer,
    parted_copies,
    skipped_steps,
    stale_casts,
)
from nbkit.findings.training.zeros import zero_gradients
from nbkit.findings.waste.rules import waste_findings
from nbkit.findings.waste.step import RecordedStep
from nbkit.schema.findings import SEVERITIES

RULES = (
    untrained,
    missing_gradients,
    not_in_optimizer,
    accumulation_findings,
    non_finite_gradients,
    skipped_steps,
    lost_updates,
    lost_averages,
    stale_casts,
    zero_gradients,
    depth_gradients,
    dropout_in_eval,
    trained_in_eval,
    norms_in_eval,
    static_statistics,
    dead_units,
    lone_samples,
    unset_statistics,
    cleared_gradients,
    clippings,
    frozen_in_optimizer,
    stopped_gradients,
    zero_rates,
    repeated_schedules,
    reset_parameters,
    parted_copies,
    kept_graphs,
    repeated_draws,
    summed_means,
    unused_gradients,
)


def audit_findings(audit: Audit) -> pd.DataFrame:
    """Returns the findings of all rules, those of the dataflow and of waste last, worst first."""
    findings = [finding for rule in RULES for finding in rule(audit)]
    findings += dataflow_findings(audit.ops, audit.tensors, audit.texts)
    step = RecordedStep(audit.ops, audit.texts, audit.tensors, audit.parameters, audit.modes)
    findings += waste_findings(step)
    return findings_frame(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
