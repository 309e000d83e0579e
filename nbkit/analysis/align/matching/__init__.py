"""Matches results of two executions: by values, names, places, parts and the graph."""
