"""Reads a OneFlow log: streams of lines per rank, and the graphs that they fill."""
