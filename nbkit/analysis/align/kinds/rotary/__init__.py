"""Tests kinds of rotary position embeddings: another layout of pairs, another base, other positions."""
