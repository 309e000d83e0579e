"""Tells ranks apart whose lines are mixed in one log, by the tags that launchers and users write before them."""

import re

# mpirun --tag-output and -l, torchrun --tee, and whatever else names the rank in brackets or before a colon.
WORD = r"(?:(?:local[_ -]?|global[_ -]?)?rank|default|worker)[ _=:-]{0,2}"
TAG = re.compile(
    rf"\[\d{{1,9}},(\d{{1,9}})\](?:<std(?:out|err|diag)>)?:|(?:\[(?:{WORD})?|[(<]{WORD})(\d{{1,9}})[\])>]\s*[:|]?"
    rf"|{WORD}(\d{{1,9}})\s*[:|]",
    re.IGNORECASE,
)
# What a tag begins with; most lines have none and are told by this alone.
FIRST = frozenset("[(<rRlLgGdDwW")


def rank_and_rest(text: str) -> tuple[str | None, str]:
    """Returns the rank that a tag at the beginning names, and the text behind it; None and all of it without one."""
    match = TAG.match(text) if text[:1] in FIRST else None
    return (next(filter(None, match.groups())), text[match.end() :]) if match else (None, text)
