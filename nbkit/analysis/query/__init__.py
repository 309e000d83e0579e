"""Picks and sorts the rows that a table shows."""
