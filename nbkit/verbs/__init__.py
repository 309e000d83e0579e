"""Holds the verbs: one file each says what it records, what its traces show, and how a line of text uses it."""
