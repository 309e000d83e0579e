"""Measures how far two tensors are apart and may be: metrics, precision of dtypes, tolerances, noise ratios."""
