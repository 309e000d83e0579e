"""Aligns two executions of a model result by result, and finds where they first diverge."""
