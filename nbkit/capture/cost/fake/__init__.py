"""Runs a step on fake tensors, which have shapes and no values, and leaves everything as it was."""
