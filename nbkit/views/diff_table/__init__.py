"""The diff table: widget, rows, details, and its panel in a report."""
