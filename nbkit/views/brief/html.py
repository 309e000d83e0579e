"""Writes a brief as HTML that needs no script, for notebooks and reports."""

import json
import re
from collections.abc import Sequence
from html import escape

from nbkit.views.brief.brief import Brief, left_out
from nbkit.views.brief.entry import Entry
from nbkit.views.statements.statement import Link, difference_link, op_link, words_html
from nbkit.views.summary.names import shown

_CODE = re.compile(r"`([^`]*)`")


def brief_html(brief: Brief, count: int, anchor: str | None = None) -> str:
    """Writes verdict, at most `count` findings and what nobody has looked at; empty where there is nothing to say.

    Before all of it stands whether the trace is incomplete. With `anchor`, the section of the trace in a page or LIVE,
    places lead to the widgets there.
    """
    rest = (left_out(len(brief.entries) - count), brief.not_looked_at)
    aside = "".join(f'<p class="nbkit-aside">{escape(text)}</p>' for text in rest if text)
    return _div(_judged(brief, count, anchor) + aside)


def findings_html(entries: Sequence[Entry], anchor: str | None) -> str:
    """Writes findings as items of a list."""
    return "".join(_item(entry, anchor) for entry in entries)


def incomplete_html(brief: Brief) -> str:
    """Writes why a trace ended early; empty if it did not."""
    if brief.incomplete is None:
        return ""
    return f'<p class="nbkit-bad"><b>Incomplete</b>: {escape(brief.incomplete)}</p>'


def _div(html: str) -> str:
    return f'<div class="nbkit-brief">{html}</div>' if html else ""


def _judged(brief: Brief, count: int, anchor: str | None) -> str:
    verdict = " ".join(words_html(words, anchor) for words in brief.verdict)
    # Findings have the colors of their own.
    tone = f' class="nbkit-{brief.tone}"' if brief.tone and not brief.entries else ""
    items = findings_html(brief.entries[:count], anchor)
    judged = f"<p{tone}>{verdict}</p>" if verdict else ""
    return incomplete_html(brief) + judged + (f"<ol>{items}</ol>" if items else "")


def _item(entry: Entry, anchor: str | None) -> str:
    first = f"<p><b>{escape(entry.severity)}, {escape(entry.rule)}</b>: {_with_code(entry.what)}</p>"
    rest = "".join(f"<p>{_with_code(text)}</p>" for text in (entry.follows, entry.advice) if text)
    return f'<li class="nbkit-{escape(entry.severity)}">{first}{_place(entry, anchor)}{rest}</li>'


def _place(entry: Entry, anchor: str | None) -> str:
    link = None if anchor is None else finding_link(entry)
    if not entry.where and link is None:
        return ""
    where = _with_code(entry.where)
    if link is not None and anchor is not None:
        where = f"{where}{', ' if where else ''}{words_html((link,), anchor)}"
    return f"<p>{where}</p>"


def finding_link(entry: Entry) -> Link | None:
    """Returns what leads to the rows of a finding: the first difference of opdiff, else its first op."""
    op = entry.row["op"]
    text = f"see {shown(op) if isinstance(op, str) else 'the op'}"
    try:
        return difference_link(text, json.loads(str(entry.row["evidence"]))["diffs_rows"][0])
    except (ValueError, TypeError, KeyError, IndexError):
        return None if entry.op_id is None else op_link(text, entry.op_id)


def _with_code(text: str) -> str:
    """Escapes a text, and makes code of what stands between backticks."""
    return _CODE.sub(r"<code>\1</code>", escape(text))
