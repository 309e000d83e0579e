"""Counts text whose encoding was mistaken once, keeps it as it is, and mends it where that loses nothing."""

MOST = 50
# UTF-8 that was read as cp1252 has these for the first byte of most characters.
SIGNS = ("Ã", "Â", "â", "å", "ä", "æ", "ç", "è", "é", "ï", "ã", "\ufffd")


class Mojibake:
    """Counts lines of such text, and keeps what they were where that can be told."""

    def __init__(self) -> None:
        self.lines: list[dict[str, str | int | None]] = []
        self.count = 0
        self.mended = 0
        self.characters = 0

    def see(self, number: int, line: str) -> None:
        """Takes a line that is not ASCII."""
        whole = repaired(line)
        if whole is None and not _is_suspect(line):
            return
        self.count += 1
        self.characters += sum(not letter.isascii() for letter in line)
        self.mended += whole is not None
        if len(self.lines) < MOST:
            self.lines.append({"line": number, "text": line[:200], "repaired": None if whole is None else whole[:200]})


def repaired(line: str) -> str | None:
    """Returns the text before its UTF-8 was read as cp1252; None if it was not, or if bytes of it were lost."""
    try:
        whole = line.encode("cp1252").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return None
    return whole if whole != line else None


def _is_suspect(line: str) -> bool:
    """Returns whether it looks like such a text: a sign of it, and a control or typographic character beside it."""
    foreign = [letter for letter in line if not letter.isascii()]
    signs = sum(letter in SIGNS for letter in foreign)
    return signs > 0 and all(ord(letter) < 0x2123 or letter == "\ufffd" for letter in foreign) and signs < len(foreign)
