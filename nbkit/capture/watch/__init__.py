"""Watches a loop of training steps at little cost, and runs chosen ones again to look at them in depth."""
