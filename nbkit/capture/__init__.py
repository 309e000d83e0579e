"""Records a running torch step."""
