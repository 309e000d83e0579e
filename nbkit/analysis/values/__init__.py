"""What the values of recorded tensors say: non-finite ones, their producers, differences of two runs."""
