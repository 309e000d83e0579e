"""Rules of what ranks do to each other: who is slow, who waits, what differs."""
