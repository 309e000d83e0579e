"""Says what the values of recorded tensors show: non-finite ones, their producers, differences of two runs."""
