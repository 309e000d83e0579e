"""Marks in a text for a frame where it holds elements of tensors, so that a report can leave them out."""

import json
from collections.abc import Iterable
from typing import Self

HIDDEN = "…"
# What a message is about is no secret: that an element is zero, NaN, Inf or a truth value.
PUBLIC_VALUES = frozenset({"0", "-0", "0.0", "-0.0", "nan", "inf", "-inf", "True", "False"})


class Message(str):
    """Joins the parts, one after the other; `spans` are beginnings and ends of the elements of tensors in it."""

    spans: tuple[tuple[int, int], ...]

    def __new__(cls, *parts: str) -> Self:
        message = super().__new__(cls, "".join(parts))
        spans, begin = [], 0
        for part in parts:
            spans += [(begin + first, begin + last) for first, last in getattr(part, "spans", ())]
            begin += len(part)
        message.spans = tuple(spans)
        return message


def element(text: str) -> Message:
    """Returns the text of an element of a tensor as part of a message."""
    message = Message(text)
    message.spans = () if text in PUBLIC_VALUES else ((0, len(text)),)
    return message


def joined(separator: str, parts: Iterable[str]) -> Message:
    """Returns the parts with a separator between them."""
    texts = [text for part in parts for text in (separator, part)]
    return Message(*texts[1:])


def with_values(text: str, values: object) -> str:
    """Returns a message from its text and its column `message_values`; if that is unreadable, all of it is values."""
    if not isinstance(values, str):
        return text
    message = Message(text)
    try:
        message.spans = tuple((int(first), int(last)) for first, last in json.loads(values))
    except (ValueError, TypeError):
        message.spans = ((0, len(text)),)
    return message


def message_values(message: object) -> str | None:
    """Returns the column `message_values` of a message: JSON of its spans; null where it holds no elements."""
    spans = getattr(message, "spans", ())
    return json.dumps(spans) if spans else None


def without_elements(text: str, spans: str) -> str:
    """Returns the text with an ellipsis for each of the spans (`message_values`), which stand in their order.

    Of a text whose spans cannot be read nothing is left: what is an element in it is not known.
    """
    try:
        pairs = [(int(first), int(last)) for first, last in json.loads(spans)]
    except (ValueError, TypeError):
        return HIDDEN
    for first, last in reversed(pairs):
        text = f"{text[:first]}{HIDDEN}{text[last:]}"
    return text
