"""Rules of a training audit about what one step leaves to the next."""
