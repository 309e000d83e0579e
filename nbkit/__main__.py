"""Runs `python -m nbkit`."""

import sys

from nbkit.command_line.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
