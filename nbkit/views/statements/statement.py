"""Statement: one question that a report's summary answers, in words that link to the rows they speak of."""

from dataclasses import dataclass
from html import escape
from typing import Literal

# Of an answer: something is wrong, nothing that was checked is, or it is no such question.
Tone = Literal["bad", "good", ""]


@dataclass(frozen=True)
class Link:
    """Words that lead to a widget of the trace, where `value` is selected: an op, or a row of `diffs`."""

    text: str
    widget: str
    value: int | None = None


Words = tuple[str | Link, ...]
# The anchor of words above a live widget: their links are buttons, which widgets/src/composite/places.js listens to.
LIVE = ""


@dataclass(frozen=True)
class Statement:
    """A question, and sentences that answer it, each of texts and links; the texts are shown as they are.

    Without a question it is for a brief alone. What `is_first` is on the first screen of a report.
    """

    question: str
    sentences: tuple[Words, ...]
    tone: Tone = ""
    is_first: bool = False


@dataclass(frozen=True)
class Chip:
    """A verdict in a few words, and whether it is bad or good; it leads to the section of its trace."""

    text: str
    tone: Tone


def no_fault(*sentences: str) -> list[Statement]:
    """Returns what a judge of a step says in a brief: nothing is wrong beside the findings."""
    return [Statement("", tuple((text,) for text in sentences), "good")]


def op_link(text: str, op_id: int) -> Link:
    """Makes words that lead to an op."""
    return Link(text, "op_table", op_id)


def difference_link(text: str, row: int) -> Link:
    """Makes words that lead to a row of `diffs`."""
    return Link(text, "diff_table", row)


def statements_html(statements: list[Statement], anchor: str) -> str:
    """Writes the statements as a list of questions with their answers; `anchor` is the section of their trace."""
    return f'<dl class="nbkit-summary">{"".join(_statement(one, anchor) for one in statements)}</dl>'


def _statement(statement: Statement, anchor: str) -> str:
    tone = f' class="nbkit-{statement.tone}"' if statement.tone else ""
    sentences = "".join(f"<p>{words_html(words, anchor)}</p>" for words in statement.sentences)
    return f"<dt>{escape(statement.question)}</dt><dd{tone}>{sentences}</dd>"


def words_text(words: Words) -> str:
    """Returns the words without their links."""
    return "".join(part if isinstance(part, str) else part.text for part in words)


def words_html(words: Words, anchor: str | None) -> str:
    """Writes words as HTML; as text alone where there is nothing to lead to: neither a page nor a live widget."""
    if anchor is None:
        return escape(words_text(words))
    return "".join(escape(part) if isinstance(part, str) else _link(part, anchor) for part in words)


def _link(part: Link, anchor: str) -> str:
    if anchor == LIVE:
        value = "" if part.value is None else f' data-value="{part.value}"'
        return f'<button type="button" data-widget="{part.widget}"{value}>{escape(part.text)}</button>'
    select = (
        "" if part.value is None else f' data-trace="{anchor}" data-widget="{part.widget}" data-value="{part.value}"'
    )
    return f'<a href="#{anchor}-{part.widget}"{select}>{escape(part.text)}</a>'
