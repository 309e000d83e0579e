"""Turns frames into frames, with pandas and numpy only."""
