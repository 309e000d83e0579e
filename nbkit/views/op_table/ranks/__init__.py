"""The op table over the ops of all ranks of a job, answered by SQL."""
