"""The tables of the schema."""

from nbkit import schema
from nbkit.schema import Table


def tables() -> list[Table]:
    """Returns every table of the schema, in its order."""
    return [value for value in vars(schema).values() if isinstance(value, Table)]
