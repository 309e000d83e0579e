"""Says what a divergence is, where it is one of a known kind: each kind is tested by applying it."""
