"""Copies a trace as it may leave the machine: without the user's paths, and without tensor elements unless asked."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from nbkit.schema import TEXT
from nbkit.schema.message import without_elements
from nbkit.trace.trace import Trace

# Columns whose texts name places in code; shapes, ops and phases do not.
COLUMNS = ("source", "own_source", "right_source", "user_line", "source_text", "text", "message", "category")
# The column that holds JSON objects, of whose texts some name places.
JSON_COLUMN = "attributes"
# What says where a message holds elements of tensors.
VALUES = "message_values"
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


def leaving(trace: Trace, *, values: bool) -> Trace:
    """Copies a trace with valid texts, shortened paths and, unless `values`, no elements of tensors in messages."""
    frames = {name: _changed_frame(frame, values=values) for name, frame in trace.frames.items()}
    return trace.copy_with(frames, _changed(trace.meta, values=values))


def _readable(text: str) -> str:
    """Shortens the paths in a text and escapes bytes of a log that were no UTF-8, which no file can hold."""
    return short_path(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _changed_frame(frame: pd.DataFrame, *, values: bool) -> pd.DataFrame:
    changed = {}
    if VALUES in frame and frame[VALUES].notna().any():
        if not values:
            changed["message"] = _without_elements(frame)
        # Shortened texts have other places.
        changed[VALUES] = pd.Series([None] * len(frame), dtype=TEXT)
    for name in COLUMNS:
        if name in frame:
            column = changed.get(name, frame[name])
            texts = {text: _readable(text) for text in column.dropna().unique()}
            if any(text != readable for text, readable in texts.items()):
                changed[name] = column.map(texts).astype(TEXT)
    if JSON_COLUMN in frame:
        changed[JSON_COLUMN] = frame[JSON_COLUMN].map(_short_json, na_action="ignore").astype(TEXT)
    return frame.assign(**changed) if changed else frame


def _without_elements(frame: pd.DataFrame) -> "pd.Series[str]":
    pairs = zip(frame["message"], frame[VALUES], strict=True)
    texts = [without_elements(text, spans) if isinstance(spans, str) else text for text, spans in pairs]
    return pd.Series(texts, dtype=TEXT)


def _short_json(text: str) -> str:
    """Shortens the paths in the texts of JSON."""
    if "/" not in text and "\\" not in text:
        return _readable(text)
    try:
        return json.dumps(_changed(json.loads(text), values=True), ensure_ascii=False)
    except ValueError:
        return _readable(text)


def _changed(data: Any, *, values: bool) -> Any:
    """Makes all texts of JSON data readable, names of mappings too; unless `values`, messages lose elements."""
    match data:
        case str():
            return _readable(data)
        case Mapping():
            if not values and isinstance(spans := data.get(VALUES), str):
                data = {**data, "message": without_elements(data["message"], spans)}
            names = [name for name in data if name != VALUES]
            return {_changed(name, values=values): _changed(data[name], values=values) for name in names}
        case list() | tuple():
            return [_changed(value, values=values) for value in data]
    return data


def short_path(text: str) -> str:
    """Shortens paths in a text: from a home or site-packages on, else to the last folder and the file."""
    text = _PACKAGES.sub("", text)
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(rf"(?<![\w.~]){re.escape(home)}(?=[/\\])", "~", text)
    return _ELSEWHERE.sub("…/", _HOMES.sub("~", text))
