"""A job: the saved traces of several ranks as one lazy trace over DuckDB."""
