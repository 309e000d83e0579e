"""HTML that needs no script, and how a trace shows itself."""
