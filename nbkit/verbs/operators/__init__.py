"""Holds the verbs of the operator tools: calls of a step that run otherwise, again, or elsewhere."""
