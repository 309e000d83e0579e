"""Holds `python -m nbkit`, nbkit for scripts and terminals: one file per subcommand."""
