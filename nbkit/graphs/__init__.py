"""Names the parts of graphs of any source, and turns rows into frames."""
