"""Measures how fast this machine runs ops."""
