"""Finds where two runs of one step diverge: pure functions on frames."""
