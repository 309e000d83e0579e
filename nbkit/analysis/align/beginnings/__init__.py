"""Beginnings of differences that show at no op: at outputs, at what calls return, at buffers."""
