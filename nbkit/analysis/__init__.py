"""analysis: frame in, frame out; pandas and numpy only."""
