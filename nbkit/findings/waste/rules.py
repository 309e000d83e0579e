"""Runs all rules of work and memory that a step does not need."""

from collections.abc import Callable

from nbkit.findings.finding import Finding
from nbkit.findings.waste.dtypes import parameter_casts, wide_products
from nbkit.findings.waste.graphs import unused_graphs
from nbkit.findings.waste.layouts import layout_conversions
from nbkit.findings.waste.repeats import repeated_work
from nbkit.findings.waste.step import RecordedStep

RULES: tuple[Callable[[RecordedStep], list[Finding]], ...] = (
    parameter_casts,
    wide_products,
    layout_conversions,
    unused_graphs,
    repeated_work,
)


def waste_findings(step: RecordedStep) -> list[Finding]:
    """Returns what a recorded step does without need, in the order of its ops; all are hints."""
    found = [finding for rule in RULES for finding in rule(step)] if len(step.ops) else []
    return sorted(found, key=lambda finding: finding.op_id or 0)
