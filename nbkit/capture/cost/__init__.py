"""Runs a step on shapes alone and counts what it would cost."""
