"""Tells what a process asked of the others while a step was recorded, and which of them it is."""
