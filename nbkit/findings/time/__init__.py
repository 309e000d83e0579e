"""Rules of where a timed step could save time: pure functions of its frames."""
