"""Tests graphs of live models."""
