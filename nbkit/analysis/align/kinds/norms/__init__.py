"""Tests kinds of normalization: another epsilon, and a norm that stands elsewhere."""
