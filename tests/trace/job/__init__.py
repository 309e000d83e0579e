"""Tests of jobs of several ranks."""
