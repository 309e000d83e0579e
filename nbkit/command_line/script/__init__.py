"""Runs a script as Python would, with its steps recorded."""
