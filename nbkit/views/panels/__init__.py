"""What a widget brings to a report: its panel, and its frames rounded and packed."""
