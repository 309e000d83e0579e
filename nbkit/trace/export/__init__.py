"""Writes files that other tools open, from a trace."""
