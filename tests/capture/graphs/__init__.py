"""Graphs of live models."""
