"""The roles that modules and nodes play, from names and from dataflow."""
