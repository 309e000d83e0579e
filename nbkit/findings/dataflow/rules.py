"""Runs all rules of the dataflow over a recording."""

from collections import defaultdict
from collections.abc import Mapping

import pandas as pd

from nbkit.findings.dataflow.attention import twice_added_mask, wrong_softmax_dim
from nbkit.findings.dataflow.autocast import outside_autocast
from nbkit.findings.dataflow.batches import lone_rows
from nbkit.findings.dataflow.caches import growing_cat
from nbkit.findings.dataflow.flow import Flow
from nbkit.findings.dataflow.found import Found
from nbkit.findings.dataflow.losses import double_activation, unintended_broadcast, unshifted_targets
from nbkit.findings.dataflow.masks import hidden_diagonal, shown_next
from nbkit.findings.dataflow.memory import overwritten_views
from nbkit.findings.dataflow.objectives import negated_loss
from nbkit.findings.dataflow.positions import rounded_positions
from nbkit.findings.dataflow.views import scrambled_heads
from nbkit.findings.finding import Finding, at_ops

RULES = (
    double_activation,
    unintended_broadcast,
    unshifted_targets,
    overwritten_views,
    rounded_positions,
    wrong_softmax_dim,
    twice_added_mask,
    hidden_diagonal,
    shown_next,
    negated_loss,
    scrambled_heads,
    growing_cat,
    outside_autocast,
    lone_rows,
)


def dataflow_findings(ops: pd.DataFrame, tensors: pd.DataFrame, texts: Mapping[str, str]) -> list[Finding]:
    """Returns what is suspicious in the dataflow of a recording; `texts` holds lines of code by source.

    Each line and module has one finding per rule, which counts its calls.
    """
    flow = Flow(ops, tensors)
    alike: dict[tuple[object, ...], list[Found]] = defaultdict(list)
    for rule in RULES:
        for found in rule(flow):
            row = ops.iloc[found.op.op_id]
            alike[found.rule, row["op"], found.op.module, str(row["source"])].append(found)
    findings = []
    for equal in alike.values():
        first = min(equal, key=lambda found: found.op.op_id)
        finding = Finding(first.rule, first.severity, first.message, first.advice, evidence=first.evidence)
        findings.append(at_ops(finding, ops, sorted(found.op.op_id for found in equal), texts))
    return sorted(findings, key=lambda finding: finding.op_id or 0)
