"""OneFlow nn.Graph debug logs: the traced and the compiled graph, modules, passes, memory and training metrics."""
