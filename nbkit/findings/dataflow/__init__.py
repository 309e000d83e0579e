"""Findings in the dataflow of a step: values that go where they were hardly meant to go."""

from nbkit.findings.dataflow.rules import dataflow_findings

__all__ = ["dataflow_findings"]
