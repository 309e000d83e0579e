"""Finds why a distributed job hangs: a collective that ranks did not make, or made otherwise than the others."""
