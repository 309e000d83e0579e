"""Audits a training step: what each parameter was given and what became of it (opaudit)."""
