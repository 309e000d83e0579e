"""A trace shows itself as text, as HTML without scripts and, by its verb's view, as a widget."""
