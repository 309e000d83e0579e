"""Rows of the frames from what a OneFlow log said."""
