"""Adds up what a step costs by module and op, its memory by kind; sets predictions beside measured times."""
