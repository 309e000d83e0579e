"""Pairs the parts, parameters and ops of two graphs, of which no values are known."""
