"""A trace as it leaves the machine: without paths of its user, and without elements of tensors unless asked."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from nbkit.trace.trace import Trace
from nbkit.views.report.paths import short_path

Change = Callable[[str], str]
# Columns whose texts name places in code, or elements; shapes, ops and phases do not.
COLUMNS = ("source", "message")
# The column that holds JSON objects, of whose texts some name places.
JSON_COLUMN = "attributes"
HIDDEN = "…"
# The worst element of a compared tensor, and where a finding names elements of tensors or their range.
_WORST = re.compile(r"(worst at \[[\d, ]*\]): [^,;]+, expected [^,;]+")
_NAMED = re.compile(
    r"(?<=inputs there: ).*|(?<=inputs: ).*|(?<= where )\S+(?= does not fit)|(?<= reach )\S+(?=,)"
    r"|(?<!\S)\S+(?= is what is left)"
)
# A number; shapes stay.
_NUMBER = re.compile(r"\[[^\]]*\]|-?\b\d[\w.+-]*")
_SAID = re.compile(r"\[.*|-?0(?:\.0*)?")


def leaving(trace: Trace, *, values: bool) -> Trace:
    """A copy of valid texts with shortened paths and, unless `values`, without elements of tensors in its messages."""
    change = _readable if values else lambda text: without_elements(_readable(text))
    frames = {name: _changed_frame(frame, change) for name, frame in trace.frames.items()}
    return Trace(frames, _changed(trace.meta, change), trace.captured)


def _readable(text: str) -> str:
    """The text with short paths; bytes of a log that were no UTF-8, which no file can hold, as escapes."""
    return short_path(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def without_elements(text: str) -> str:
    """A message without elements of tensors; that one is 0, NaN or Inf is what it is about, and stays."""
    return _NAMED.sub(lambda found: _NUMBER.sub(_hidden, found[0]), _WORST.sub(r"\1", text))


def _hidden(number: re.Match[str]) -> str:
    return number[0] if _SAID.fullmatch(number[0]) else HIDDEN


def _changed_frame(frame: pd.DataFrame, change: Change) -> pd.DataFrame:
    changed = {}
    for name in COLUMNS:
        if name in frame:
            texts = {text: change(text) for text in frame[name].dropna().unique()}
            if any(text != other for text, other in texts.items()):
                changed[name] = frame[name].map(texts).astype("str")
    if JSON_COLUMN in frame:
        changed[JSON_COLUMN] = frame[JSON_COLUMN].map(_short_json, na_action="ignore").astype("str")
    return frame.assign(**changed) if changed else frame


def _short_json(text: str) -> str:
    """JSON with shortened paths in its texts; without a separator of paths there is none."""
    if "/" not in text and "\\" not in text:
        return _readable(text)
    try:
        return json.dumps(_changed(json.loads(text), _readable), ensure_ascii=False)
    except ValueError:
        return _readable(text)


def _changed(data: Any, change: Change) -> Any:
    """JSON data with all of its texts changed, names of mappings too."""
    match data:
        case str():
            return change(data)
        case Mapping():
            return {_changed(name, change): _changed(value, change) for name, value in data.items()}
        case list() | tuple():
            return [_changed(value, change) for value in data]
    return data
