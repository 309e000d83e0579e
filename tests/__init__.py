"""Tests of nbkit. What is set here holds before numpy and torch are imported."""

import os

# The tests' arrays are tiny, and on a busy machine threads that wait for each other make them slow: numpy's BLAS reads
# this once, when it is imported. Kernels and processes inherit it.
os.environ["OMP_NUM_THREADS"] = "1"
