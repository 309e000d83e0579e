"""Holds what one execution of a model computed, result by result, whatever ran it: torch, onnxruntime, a recording."""
