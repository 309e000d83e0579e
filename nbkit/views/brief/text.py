"""Text writes a brief for people at a terminal and for assistants: plain, or as Markdown; and as JSON."""

import json
import re
from collections.abc import Callable, Sequence
from textwrap import TextWrapper
from typing import Any

import numpy as np

from nbkit import units
from nbkit.findings.finding import calls_of
from nbkit.views.brief.brief import Brief, left_out
from nbkit.views.brief.entry import Entry
from nbkit.views.statements.statement import words_text
from nbkit.views.summary.names import shown

TOKENS = 1500
# A rule of thumb for English with code; nothing here counts tokens.
CHARACTERS_PER_TOKEN = 3.5
INDENT = "   "
# Of a finding, what JSON has as it stands in the frame.
PLAIN = ("severity", "rule", "message", "op_id", "op", "parameter", "module", "phase", "step", "source", "source_text",
         "count", "effect_us", "effect_bytes", "advice")  # fmt: skip
# A space that ends no line.
HELD = "\0"
_CODE = re.compile("`[^`]*`")
_MARKS = re.compile(r"([\\*_<>\[\]#$|~])")


def brief_text(brief: Brief, tokens: int) -> str:
    """Writes a brief as plain text of about so many tokens at most; findings that do not fit are counted."""
    return _fitted(brief, tokens, _plain_entry, str)


def brief_markdown(brief: Brief, tokens: int) -> str:
    """Writes the same as Markdown."""
    return _fitted(brief, tokens, _markdown_entry, _escaped)


def brief_json(brief: Brief, tokens: int) -> str:
    """Writes a brief as JSON: an object with the same sentences, and the findings with all that their rows hold."""
    shown_count = _kept(brief, tokens, [json.dumps(_facts(entry), ensure_ascii=False) for entry in brief.entries])
    return json.dumps(brief_object(brief, shown_count), ensure_ascii=False)


def brief_object(brief: Brief, count: int) -> dict[str, Any]:
    """Returns a brief as JSON data, with at most `count` findings."""
    return {
        "ran": brief.ran,
        "incomplete": brief.incomplete,
        "verdict": [words_text(words) for words in brief.verdict],
        "findings": [_facts(entry) for entry in brief.entries[:count]],
        "further_findings": max(len(brief.entries) - count, 0),
        "limits": [*brief.limits],
        "not_looked_at": [{"question": look.question, "verb": f"nbkit.{look.verb}"} for look in brief.missing],
    }


def brief_lines(brief: Brief, count: int, width: int) -> list[str]:
    """Writes what a summary says first, in lines of `width` characters: at most `count` findings."""
    parts = [_verdict(brief)]
    parts += [_plain_entry(number, entry) for number, entry in enumerate(brief.entries[:count], start=1)]
    parts += [left_out(len(brief.entries) - count), brief.not_looked_at]
    return [line for part in parts if part for line in [*_wrapped(part, width), ""]]


def _wrapped(part: str, width: int) -> list[str]:
    """Wraps the lines of a part, those of a finding below its number."""
    lines = []
    for line in part.split("\n"):
        start = INDENT if line.startswith(INDENT) else ""
        rest = INDENT if re.match(r"\d+\. ", line) else start
        # Code stays on one line, to be found and copied.
        whole = _CODE.sub(lambda code: code[0].replace(" ", HELD), line.strip())
        wrapper = TextWrapper(width, start, rest, break_long_words=False, break_on_hyphens=False)
        lines += [part.replace(HELD, " ") for part in wrapper.wrap(whole)]
    return lines


def _fitted(brief: Brief, tokens: int, entry_text: Callable[[int, Entry], str], escaped: Callable[[str], str]) -> str:
    texts = [entry_text(number, entry) for number, entry in enumerate(brief.entries, start=1)]
    kept = _kept(brief, tokens, texts)
    incomplete = f"Incomplete: {brief.incomplete.removesuffix('.')}." if brief.incomplete else ""
    head = [incomplete, _verdict(brief)]
    tail = [left_out(len(texts) - kept), brief.not_looked_at, brief.ran]
    return "\n\n".join([*map(escaped, filter(None, head)), *texts[:kept], *map(escaped, filter(None, tail))])


def _kept(brief: Brief, tokens: int, texts: Sequence[str]) -> int:
    """Returns how many of the texts of findings fit beside the rest."""
    rest = (brief.ran, brief.incomplete or "", _verdict(brief), left_out(len(texts)), brief.not_looked_at)
    room = tokens * CHARACTERS_PER_TOKEN - sum(len(text) + 2 for text in rest)
    return int((np.cumsum([len(text) + 2 for text in texts]) <= room).sum())


def _verdict(brief: Brief) -> str:
    return " ".join(words_text(words) for words in brief.verdict)


def _plain_entry(number: int, entry: Entry) -> str:
    """Writes a finding in lines: what is so, where it is, what follows, what to do."""
    lines = [f"{number}. {entry.severity}, {entry.rule}: {entry.what}", entry.where, entry.follows, entry.advice]
    return f"\n{INDENT}".join(line for line in lines if line)


def _markdown_entry(number: int, entry: Entry) -> str:
    first = f"{number}. **{entry.severity}**, `{entry.rule}`: {_escaped(entry.what)}"
    # Two spaces end a line.
    rest = [_escaped(text) for text in (entry.where, entry.follows, entry.advice) if text]
    return f"  \n{INDENT}".join([first, *rest])


def _escaped(text: str) -> str:
    """Escapes what Markdown would read as marks, but for code between backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one backtick too many: none of them is meant
        return _MARKS.sub(r"\\\1", text).replace("`", r"\`")
    return "`".join(part if number % 2 else _MARKS.sub(r"\\\1", part) for number, part in enumerate(parts))


def _facts(entry: Entry) -> dict[str, Any]:
    values = {name: None if units.is_null(value := entry.row[name]) else value for name in PLAIN}
    texts = {name: shown(value, 2000) if isinstance(value, str) else value for name, value in values.items()}
    follows = {"consequences": entry.consequences, "follows": entry.follows} if entry.follows else {}
    return {**texts, "calls": calls_of(entry.row["evidence"]), **follows}
