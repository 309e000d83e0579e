"""The first screen of a report: what ran, how long a step takes, what is wrong and where to look."""
