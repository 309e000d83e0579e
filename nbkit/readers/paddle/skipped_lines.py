"""Unread: the lines, or parts of lines, that could not be read, for `meta["unread"]`."""

from typing import Any

MOST_ROWS = 1000
LONGEST_TEXT = 200


class Unread:
    """Rows with line, text and reason; `count` goes on where the rows end."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.count = 0

    def add(self, line: int, text: str, reason: str) -> None:
        """Line `line`, or the part `text` of it, was left out because of `reason`."""
        self.count += 1
        if len(self.rows) < MOST_ROWS:
            self.rows.append({"line": line, "text": text.strip()[:LONGEST_TEXT], "reason": reason})
