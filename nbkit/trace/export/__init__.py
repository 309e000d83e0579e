"""Files that other tools open, written from a trace."""
