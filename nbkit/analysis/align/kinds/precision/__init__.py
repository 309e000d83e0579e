"""Tests kinds of precision: a side that is rounded, multiplies with fewer bits, or casts to fewer bits and back."""
