"""The recorder of aten ops in C++: built on request, used where it fits, with the Python one as fallback and reference."""
