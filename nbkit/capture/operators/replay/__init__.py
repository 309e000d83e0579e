"""Runs captured calls again, for accuracy and speed (opreplay)."""
