"""Recording a running torch step."""
