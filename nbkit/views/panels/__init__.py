"""Panels are what widgets bring to a report, with their frames rounded and packed."""
