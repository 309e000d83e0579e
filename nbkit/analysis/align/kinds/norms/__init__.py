"""Tests kinds of normalisation: another epsilon, and a norm that stands elsewhere."""
