"""Reads dumps of torch's flight recorder: the collectives that each process of a distributed job called last."""
