"""Says which op of a recorded step made, wrote and read what, and decodes its shapes and arguments."""
