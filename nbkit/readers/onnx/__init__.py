"""Reads ONNX models as graphs."""
