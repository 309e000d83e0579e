"""Captures calls: turns an op and its values into plain data, and back into tensors."""
