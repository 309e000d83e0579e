"""Tells which calls of a running step the filters mean: by name, module, phase and number."""
