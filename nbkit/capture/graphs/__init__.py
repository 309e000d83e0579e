"""Builds graphs of live models: the module tree, and what torch.export and FX made of a model."""
