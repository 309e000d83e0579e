"""The public names of nbkit."""

import nbkit


def public_names() -> list[str]:
    """Returns what `nbkit` offers, by name: what is imported with it, and what is at its first use."""
    return sorted({*nbkit.__all__, *nbkit._AT_FIRST_USE}, key=str.lower)
