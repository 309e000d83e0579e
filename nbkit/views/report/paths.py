"""Paths of the machine that a trace was recorded on, shortened for a report that leaves it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from nbkit.trace import Trace

# Columns whose texts name places in code; shapes, ops and phases do not.
COLUMNS = ("source", "message")
_PACKAGES = re.compile(r"(?:[A-Za-z]:)?[\w.~+@/\\-]*[/\\](?=(?:site|dist)-packages[/\\])")
# A home of whatever machine: Linux, macOS, that of an administrator, Windows.
_HOMES = re.compile(
    r"(?<![\w.~])(?:/(?:home|Users)/[^/\s:'\"]+|/[r]oot|[A-Za-z]:[/\\]Users[/\\][^/\\\s:'\"]+)(?=[/\\])"
)


def without_user_paths(trace: Trace) -> Trace:
    """A copy whose sources, messages and meta have `~` for a home directory, and packages from `site-packages` on."""
    frames = {name: _shortened(frame) for name, frame in trace.frames.items()}
    return Trace(frames, _shortened_data(trace.meta), trace.kept)


def short_path(text: str) -> str:
    """The text with the paths in it shortened."""
    text = _PACKAGES.sub("", text)
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(rf"(?<![\w.~]){re.escape(home)}(?=[/\\])", "~", text)
    return _HOMES.sub("~", text)


def _shortened(frame: pd.DataFrame) -> pd.DataFrame:
    changed = {}
    for name in COLUMNS:
        if name in frame:
            texts = frame[name].dropna().unique()
            short = {text: short_path(text) for text in texts}
            if any(text != other for text, other in short.items()):
                changed[name] = frame[name].map(short).astype("str")
    return frame.assign(**changed) if changed else frame


def _shortened_data(data: Any) -> Any:
    """JSON data with all of its texts shortened, names of mappings too."""
    match data:
        case str():
            return short_path(data)
        case Mapping():
            return {_shortened_data(name): _shortened_data(value) for name, value in data.items()}
        case list() | tuple():
            return [_shortened_data(value) for value in data]
    return data
