"""Holds small real models in plain torch, for the notebooks, the tests and the benchmarks."""
