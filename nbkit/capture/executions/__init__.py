"""Runs torch models as executions, and exports them."""
