"""Turns Chrome traces into folders of Parquet files: asked for, or once where a large one is loaded."""
