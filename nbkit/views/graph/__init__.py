"""The graph view: widget, data, and its panel in a report."""
