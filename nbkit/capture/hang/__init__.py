"""Writes what a rank of a hanging job knows: its flight recorder's dump, and the recording that an error ended."""
