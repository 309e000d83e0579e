"""Paths of the machine that a trace was recorded on, shortened for a report that leaves it."""

import re
from pathlib import Path

# Only from the beginning of a word on: a long one would be looked through from each of its letters.
_PACKAGES = re.compile(r"(?<![\w.~+@/\\-])(?:[A-Za-z]:)?[\w.~+@/\\-]*[/\\](?=(?:site|dist)-packages[/\\])")
# A home of whatever machine: Linux, macOS, that of an administrator, Windows.
_HOMES = re.compile(
    r"(?<![\w.~])(?:/(?:home|Users)/[^/\s:'\"]+|/[r]oot|[A-Za-z]:[/\\]Users[/\\][^/\\\s:'\"]+)(?=[/\\])"
)
# What is left of an absolute path: all folders but the last one.
_ELSEWHERE = re.compile(
    r"(?<![\w.~/\\-])(?:/(?:[^/\s:'\"]+/)+|[A-Za-z]:[/\\](?:[^/\\\s:'\"]+[/\\])+)(?=[^/\\\s:'\"]+[/\\][^/\\\s:'\"]+)"
)


def short_path(text: str) -> str:
    """The text with the paths in it shortened: from a home or site-packages on, else the last folder and the file."""
    text = _PACKAGES.sub("", text)
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(rf"(?<![\w.~]){re.escape(home)}(?=[/\\])", "~", text)
    return _ELSEWHERE.sub("…/", _HOMES.sub("~", text))
