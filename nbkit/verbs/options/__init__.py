"""Reads options of a line of text, after the signature and docstring of the function that takes them."""
