"""Finds where two runs of one step diverge: pure functions on frames.

Of recorded statistics, not values: ops are paired in call order. Executions with values are aligned in
nbkit.analysis.align, graphs without either in nbkit.analysis.graph_match.
"""
