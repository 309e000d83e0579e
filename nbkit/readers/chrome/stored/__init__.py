"""Converts Chrome traces of any size to folders of Parquet files, in memory that does not grow with the file."""
