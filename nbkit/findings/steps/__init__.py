"""Judges many training steps by a few numbers of each."""
