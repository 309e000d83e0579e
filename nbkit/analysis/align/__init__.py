"""Aligns two executions of a model result by result, and finds where they first diverge.

By values, of one side at least; two recorded traces have statistics alone, and nbkit.divergence judges them (traces/).
"""
