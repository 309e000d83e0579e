"""Recognizes what a graph is made of: the roles of its nodes and modules, its parts, repeats and phases."""
