"""Runs ONNX models with onnxruntime as executions."""
