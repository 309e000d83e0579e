"""Rules of work and memory that a step does not need, told from what ran, without a clock."""
