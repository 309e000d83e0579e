"""Finds the folder of the user's machine in which nbkit keeps what it has built or measured there."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Returns NBKIT_CACHE, else `nbkit` below XDG_CACHE_HOME or ~/.cache; the folder may not be there yet."""
    if value := os.environ.get("NBKIT_CACHE"):
        return Path(value)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nbkit"
