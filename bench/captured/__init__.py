"""Holds the training steps that bench/replay.py captures, and what it counts of them without nbkit."""
