"""Strips lines of a OneFlow log of what was put before them: colors, rank tags, times and marks of other tools."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from nbkit.readers import rank_tags
from nbkit.readers.rank_tags import RankTags

COLOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What stands first in a line that may have a known prefix; most lines have none and are told by this alone.
FIRST = rank_tags.FIRST | frozenset("#>|/;0123456789")
PREFIX = re.compile(
    r"(?:#|//|;|>|\|)+(?:\s+|$)"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?:\s*[-|]?\s*\[?"
    r"(?:DEBUG|INFO|WARNING|WARN|ERROR)\]?(?:\s*[-|:])?)?(?:\s+|$)"
    r"|\d{1,9}(?:(?::(?!\d)|\t)\s?|$)"
)
BEFORE_TAG = re.compile(rf"(?:{COLOR.pattern}|{PREFIX.pattern}|\s)*")
GLOG = re.compile(r"([IWEF])(\d{8}|\d{4}) (\d\d:\d\d:\d\d\.\d+) {1,9}(\d+) ([\w./-]+\.(?:cpp|cc|cu|h|hpp):\d+)\] ?")
# What begins a record in the middle of a line, behind a prefix that no pattern knows.
MARK = re.compile(
    r"[IWEF]\d{8} \d\d:\d\d:\d\d\.\d+ {1,9}\d+ [\w./-]+\.(?:cpp|cc|cu|h|hpp):\d+\]"
    r"|\[\d\d/\d\d \d\d:\d\d:\d\d[ \]]"
    r"|\((?:GRAPH|MODULE|INPUT|OUTPUT|PARAMETER|BUFFER|CONFIG|OPERATOR):"
)
LONGEST_PREFIX, PREFIX_ENDS = 120, frozenset(":|>])")
MOST_PREFIXES = 4


class Glog(NamedTuple):
    """Holds the head of a glog line, and its message."""

    severity: str
    date: str
    time: str
    thread: str
    site: str
    message: str


def glog(text: str) -> Glog | None:
    """Returns the glog line in `text`; None if it is no such line."""
    if text[:1] not in "IWEF" or not (match := GLOG.match(text)):
        return None
    return Glog._make((*match.groups(), text[match.end() :]))


class Cleaner:
    """Takes prefixes off; those of an unknown form are learned where a record begins behind one.

    `lines` are those of the log: they tell whether numbers in brackets are ranks.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._tags = RankTags(BEFORE_TAG.sub("", line, count=1) if "[" in line else "" for line in lines)
        self._learned: list[re.Pattern[str]] = []

    def clean(self, line: str) -> tuple[str | None, str]:
        """Returns the rank that a tag names, else None; and the line without prefixes and white space around it."""
        if "\x1b" in line:
            line = COLOR.sub("", line)
        text, rank = line.strip(), None
        if text[:1] in FIRST:
            rank, text = self._without_prefixes(text)
        for pattern in self._learned:
            if match := pattern.match(text):
                return rank, text[match.end() :].lstrip()
        return rank, text

    def learn(self, text: str) -> str | None:
        """Returns the record in a line that begins with something else, if there is one; learns its prefix."""
        match = MARK.search(text, 1)
        if match is None:
            return None
        prefix = text[: match.start()].rstrip()
        # A name, or what a person wrote, must not be taken for one.
        if prefix[-1:] in PREFIX_ENDS and len(prefix) <= LONGEST_PREFIX and len(self._learned) < MOST_PREFIXES:
            self._learned.append(re.compile(re.sub(r"\d+", lambda _: r"\d+", re.escape(prefix))))
        return text[match.start() :]

    def _without_prefixes(self, text: str) -> tuple[str | None, str]:
        """Returns the rank that a tag names, and the text behind all known prefixes."""
        rank = None
        for _ in range(MOST_PREFIXES):
            found, rest = self._tags.rank_and_rest(text)
            if found is None and (match := PREFIX.match(text)):
                rest = text[match.end() :]
            if rest is text:
                break
            rank, text = found or rank, rest.lstrip()
        return rank, text
