"""Records steps for the rules of the dataflow, and gives what they find."""

import nbkit
from nbkit.findings.dataflow.rules import dataflow_findings
from nbkit.findings.finding import line_texts


def found(step):
    with nbkit.optrace() as trace:
        step()
    return dataflow_findings(trace.ops, trace.tensors, line_texts(trace.lines))
