"""opdiff(level="module"): each module's call, forward and backward, beside the same module on the reference."""
