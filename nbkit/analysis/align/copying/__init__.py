"""Finds which parameters of one model are those of another implementation of it, and in which layout."""
