"""What opalign is judged by: pairs of implementations, planted faults, and truth that was found without nbkit."""
