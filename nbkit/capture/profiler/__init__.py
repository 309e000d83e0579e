"""Recording on the profiler's clock: Kineto's events, ranges, repeats."""
