"""opdiff: each op of a step against a reference."""
