"""Says where time and memory go, and what changed between two timed steps."""
