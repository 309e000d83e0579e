"""What opalign is judged by: pairs of implementations, planted faults, and which results are the same, found without nbkit."""
