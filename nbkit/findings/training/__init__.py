"""The rules of opaudit: what is wrong in a training step, from frames."""
