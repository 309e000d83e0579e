"""Records a step on the profiler's clock: Kineto's events, ranges, repeats."""
