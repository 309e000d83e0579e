"""Holds the trace: the frames of one recording with what is known of it; saved, loaded and exported."""
