"""Describes a recorded step: shapes and arguments of its ops, decoded."""
