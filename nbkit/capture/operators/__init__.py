"""Runs chosen calls of a step otherwise: elsewhere, in another dtype, again; one engine, one small file per tool."""
