"""What brief and report say of a job of several ranks."""
