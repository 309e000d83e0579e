"""Defines the calls that calibrate() measures."""
