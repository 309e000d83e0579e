"""What of one graph corresponds to what of another: parts, parameters and ops."""
