"""Tells ranks apart whose lines are mixed in one log, by the tags that launchers and users write before them."""

import re
from collections.abc import Iterable
from itertools import islice

# mpirun --tag-output and -l, torchrun --tee, and whatever else names the rank in brackets or before a colon.
WORD = r"(?:(?:local[_ -]?|global[_ -]?)?rank|default|worker)[ _=:-]{0,2}"
TAG = re.compile(
    rf"\[\d{{1,9}},(\d{{1,9}})\](?:<std(?:out|err|diag)>)?:|(?:\[(?:{WORD})?|[(<]{WORD})(\d{{1,9}})[\])>]\s*[:|]?"
    rf"|{WORD}(\d{{1,9}})\s*[:|]",
    re.IGNORECASE,
)
# What a tag begins with; most lines have none and are told by this alone.
FIRST = frozenset("[(<rRlLgGdDwW")

# A number alone.
BARE = re.compile(r"\[(\d{1,9})\]")
MOST_LINES = 100_000


class RankTags:
    """Tells ranks by their tags. Numbers in brackets alone are ranks where `lines` begin with those of several.

    These follow each other, as 0, 1, 2, 3 do, and are far fewer than the lines, which may be numbered, too.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        numbers, count = set[int](), 0
        for count, line in enumerate(islice(lines, MOST_LINES), 1):  # noqa: B007  the last one is their number
            if match := BARE.match(line):
                numbers.add(int(match[1]))
        self.has_bare = 1 < len(numbers) <= count / 2 and max(numbers) - min(numbers) < len(numbers)

    def rank_and_rest(self, text: str) -> tuple[str | None, str]:
        """Returns the rank that a tag at the beginning names, and the text behind it; None and all of it without."""
        match = TAG.match(text) if text[:1] in FIRST else None
        if match is None:
            return None, text
        rank = next(filter(None, match.groups()))
        return rank if self.has_bare or not BARE.match(text) else None, text[match.end() :]
