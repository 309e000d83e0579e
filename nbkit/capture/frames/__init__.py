"""Builds the frames of a trace from the raw record."""
