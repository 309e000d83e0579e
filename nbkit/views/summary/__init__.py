"""Facts that all views state about a trace as a whole, and how numbers and names are shown."""
