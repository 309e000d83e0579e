"""Reads files of other tools as traces."""
