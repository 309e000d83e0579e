"""Verbs about a job of several processes."""
