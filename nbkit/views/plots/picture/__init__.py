"""Describes a picture once, and draws it live with plotly and static with matplotlib."""
