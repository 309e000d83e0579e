"""The tables of a summary, verb by verb."""
