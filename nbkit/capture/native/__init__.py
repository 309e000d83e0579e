"""The recorder of aten ops in C++: built on request, used where it fits; the Python one is fallback and reference."""
