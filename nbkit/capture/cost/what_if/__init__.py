"""Answers what a step would cost under other conditions."""
