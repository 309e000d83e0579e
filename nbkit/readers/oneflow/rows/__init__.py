"""Builds rows of the frames from what a OneFlow log said."""
