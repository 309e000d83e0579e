"""Reads what the lines of a OneFlow log say."""
