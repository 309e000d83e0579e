"""Answers whether a step fits a memory, and what makes it fit."""
