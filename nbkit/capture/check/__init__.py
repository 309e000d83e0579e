"""Finds the first op that makes a NaN, an Inf or an overflow (opcheck)."""
