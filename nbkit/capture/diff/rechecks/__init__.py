"""Looks once more at what exceeds its own rounding: conditioning, inner rounding, fewer bits, ties."""
