"""How far two tensors are apart, and how far they may be: metrics, precision of dtypes, tolerances, noise ratios."""
