"""Findings: what a verb says is wrong in a step, as one list."""
