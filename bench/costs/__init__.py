"""Holds the steps and measurements of cost.py."""
