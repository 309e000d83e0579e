"""Runs all rules of the dataflow over a recording."""

from collections import defaultdict
from collections.abc import Mapping
from operator import attrgetter

import pandas as pd

from nbkit.findings.dataflow.flow import Flow
from nbkit.findings.finding import Finding, at_ops, rules_in
from nbkit.step.step import Step

RULES, OP_ID = rules_in("nbkit.findings.dataflow"), attrgetter("op_id")


def dataflow_findings(
    ops: pd.DataFrame, tensors: pd.DataFrame, texts: Mapping[str, str], flow: Flow | None = None
) -> list[Finding]:
    """Returns what is suspicious in the dataflow of a recording; `texts` holds lines of code by source.

    Each line and module has one finding per rule, which counts its calls. `flow` is that of the ops, where it is known.
    """
    flow = flow or Flow(Step(ops, tensors), texts)
    alike: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for rule in RULES:
        for finding in rule(flow):
            row = ops.iloc[OP_ID(finding)]
            alike[finding.rule, row["op"], str(row["module"]), str(row["source"])].append(finding)
    findings = [at_ops(min(equal, key=OP_ID), ops, sorted(map(OP_ID, equal)), texts) for equal in alike.values()]
    return sorted(findings, key=OP_ID)
