"""Options of a line of text, read from the signature and docstring of the function that they are handed to."""
