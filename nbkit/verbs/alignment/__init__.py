"""Puts two executions side by side: opalign, and what its two sides may be."""
