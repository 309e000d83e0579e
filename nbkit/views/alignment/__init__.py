"""Two executions side by side: table, text, graphs, and their panel in a report."""
