"""Graphs made from recorded ops."""
