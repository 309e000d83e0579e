"""The tables of the schema."""

from nbkit import schema
from nbkit.schema import GRAPHS, Table


def tables() -> list[Table]:
    """Returns every table of the schema, in its order."""
    return [value for value in vars(schema).values() if isinstance(value, Table)]


def page_of(of: Table) -> str:
    """Returns the page of a table, below docs/."""
    return f"frames/{'graphs' if of in GRAPHS else 'recordings'}/{of.name}.md"
