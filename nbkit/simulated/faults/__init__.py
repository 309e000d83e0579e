"""Plants faults: which ops are hit, and what each kind does."""
