"""The flame graph: widget, state, static view, and its panel in a report."""
