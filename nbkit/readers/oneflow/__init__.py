"""Reads OneFlow nn.Graph debug logs: traced and compiled graph, modules, passes, memory and training metrics."""
