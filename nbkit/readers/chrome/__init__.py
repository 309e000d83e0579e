"""Reads Chrome traces of torch.profiler and of nbkit itself."""
