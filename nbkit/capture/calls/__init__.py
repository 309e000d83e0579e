"""Captured calls: an op with its values, as plain data and as tensors again."""
