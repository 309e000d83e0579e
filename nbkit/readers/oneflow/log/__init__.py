"""A OneFlow log while it is read: streams of lines per rank, and the graphs that they fill."""
