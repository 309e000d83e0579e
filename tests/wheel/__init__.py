"""The package as it is installed: what the wheel holds, and its use from an environment that has nothing else."""
