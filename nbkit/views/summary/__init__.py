"""What views say of a trace in words; numbers with units."""
