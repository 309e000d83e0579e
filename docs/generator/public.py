"""The public names of nbkit."""

import nbkit


def public_names() -> list[str]:
    """Returns what `nbkit` offers, by name."""
    return sorted(nbkit.__all__, key=str.lower)
