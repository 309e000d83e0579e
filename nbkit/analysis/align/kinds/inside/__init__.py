"""Applies kinds to results inside a region, and carries them on to the pair, as where one side is a fused op."""
