"""Measures nbkit side by side with its peers; no part of the tests' verdict."""
