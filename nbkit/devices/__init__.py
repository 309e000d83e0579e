"""Describes devices and predicts how long ops take on them; knows no torch."""
