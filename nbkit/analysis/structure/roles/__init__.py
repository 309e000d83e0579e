"""Finds the roles of modules and nodes, from names and from dataflow."""
