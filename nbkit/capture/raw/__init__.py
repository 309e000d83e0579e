"""Holds the raw record of a step, and the ways into torch that it is written through; the lowest room of capture."""
