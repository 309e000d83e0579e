"""Where two runs of a step part: which ops began it, and what the others inherited. Shared by capture and analysis."""
