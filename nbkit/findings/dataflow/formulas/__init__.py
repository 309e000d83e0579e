"""Rules about formulas of losses, attention and averages that a small slip changes."""
