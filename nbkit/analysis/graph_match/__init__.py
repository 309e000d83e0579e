"""Pairs the parts, parameters and ops of two graphs."""
