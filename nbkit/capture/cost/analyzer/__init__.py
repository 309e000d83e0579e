"""Makes the table of the Colossal-AI Analyzer of a model: a row per node, by torch.fx's names."""
