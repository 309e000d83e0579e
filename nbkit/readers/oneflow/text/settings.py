"""Reads the settings of the run that a log shows: LiBai's config file, world size, sizes of the data."""

import ast
import re
import warnings
from typing import Any

from nbkit.readers.oneflow.text.lines import MARK

CONFIG = re.compile(r"Contents of args\.config_file=(.{1,1000}?):?$")
FACTS = {
    "world_size": re.compile(r"\bWorld size: (\d{1,9})\b"),
    "data_tokens": re.compile(r"\bdata has (\d{1,18}) tokens\b"),
    "unique_tokens": re.compile(r"\btokens, (\d{1,18}) unique\b"),
    "command_line": re.compile(r"\bCommand line arguments: (.{1,4000})"),
}
SCALED = re.compile(r"Auto-scaling the config to (.{1,1000})")
WORDS = ("World size", " tokens, ", "Command line", "Contents of args", "Auto-scaling")
MOST_LINES = 5_000


class Settings:
    """Holds rows of settings, and `config`, the lines of a config file; a file that is no Python gives no rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.config: list[str] = []
        self.is_unreadable = False
        self._first: int | None = None
        self._known: set[tuple[str, str]] = set()

    def see(self, number: int, line: str) -> None:
        """Looks at a line as it stands in the file: the config keeps its indentation, and its comments are none."""
        if self._first is not None:
            if MARK.search(line) is None and len(self.config) < MOST_LINES:
                self.config.append(line)
                return
            self.close()
        if not any(word in line for word in WORDS):
            return
        for name, pattern in FACTS.items():
            if found := pattern.search(line):
                self._add(name, found[1], number)
        if found := SCALED.search(line):
            for setting in found[1].split(", "):
                name, equals, text = setting.partition("=")
                if equals:
                    self._add(name, text, number)
        if (found := CONFIG.search(line)) and not self.config:
            self._add("config_file", found[1], number)
            self._first = number + 1

    def close(self) -> None:
        """Ends the config file, if one is being read."""
        first, self._first = self._first, None
        for name, text, line in [] if first is None else self._assignments():
            self._add(name, text, (first or 0) + line - 1)

    def _add(self, name: str, text: str, line: int) -> None:
        # Every rank may print its own.
        if (name, text) not in self._known:
            self._known.add((name, text))
            self.rows.append({"name": name, "text": text, "line": line})

    def _assignments(self) -> list[tuple[str, str, int]]:
        """Returns target, expression and line of each assignment at the top of the config; nothing of it is run."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the compiler's, of the user's texts
                body = ast.parse("\n".join(self.config)).body
            return [
                (ast.unparse(target), ast.unparse(one.value), one.lineno)
                for one in body
                if isinstance(one, ast.Assign)
                for target in one.targets
            ]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.is_unreadable = True
            return []
