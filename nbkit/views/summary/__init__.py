"""What all views say of a trace as a whole; numbers with units, names for the eye."""
