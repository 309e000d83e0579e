"""Graphs of any source: what their parts may be called, and how rows become frames."""
