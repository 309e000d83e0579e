"""Checks, audits and times a step, and measures its memory, in one recording (opdoctor)."""
