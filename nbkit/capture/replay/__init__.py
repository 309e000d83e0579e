"""Running one op of the step again, isolated from it."""
