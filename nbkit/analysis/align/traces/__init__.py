"""Makes executions of recorded traces, and aligns two of them by their statistics."""
