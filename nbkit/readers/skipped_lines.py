"""Collects lines of a file that could not be read, for `meta["skipped_lines"]`."""

from typing import Any

MOST_ROWS = 1000
LONGEST_TEXT = 200


class SkippedLines:
    """Collects rows with line, text and reason; `count` goes on where the rows end."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.count = 0

    def add(self, line: int, text: str, reason: str) -> None:
        """Adds line `line`, or the part `text` of it, which was left out because of `reason`."""
        self.count += 1
        if len(self.rows) < MOST_ROWS:
            self.rows.append({"line": line, "text": text.strip()[:LONGEST_TEXT], "reason": reason})
