"""Sentences of a report's summary as plain texts."""

from nbkit.views.statements.statement import Statement


def told(statement: Statement) -> list[str]:
    """Its sentences without their links."""
    return ["".join(part if isinstance(part, str) else part.text for part in words) for words in statement.sentences]
