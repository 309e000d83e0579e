"""What the recorder knows of the running step: its modules, optimizers, source lines, compiled regions."""
