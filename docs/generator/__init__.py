"""Makes the pages of verbs, frames and functions from docstrings, option parsers, the schema and what examples print.

`python -m docs.generator [FOLDER]` (`make docs`) writes them; a test holds docs/ to what it would write.
"""
