"""Shows a graph, and what two graphs have in common, as tables."""
