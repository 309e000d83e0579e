"""What could not be read, line by line: no loss is silent."""

LONGEST_TEXT = 200
MOST = 1000


class Unread:
    """Rows for meta["unread"]; beyond MOST they are only counted."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str | int]] = []
        self.count = 0

    def add(self, line: int, text: str, reason: str) -> None:
        """A line, or the record that began there, that was not understood."""
        self.count += 1
        if len(self.rows) < MOST:
            self.rows.append({"line": line, "text": text[:LONGEST_TEXT], "reason": reason})
