"""`python -m nbkit info`: what is installed here, or what is known about a trace."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nbkit.capture.native.machine import machine
from nbkit.command_line.command import FINE, PROGRAM, Command
from nbkit.command_line.parser import CommandParser, bad_use
from nbkit.command_line.terminal import show
from nbkit.load import load
from nbkit.trace.trace import Trace
from nbkit.views.summary.names import shown

DESCRIPTION = f"""\
Versions, the recorder and the devices of this machine; of a trace, its frames and all that is known about it.

    {PROGRAM} info                   for a bug report
    {PROGRAM} info trace             when was it recorded, with what, what was skipped?
    {PROGRAM} info trace --json      the same for another program"""

# Of a list that is told line by line.
MOST = 20


def _run(words: Sequence[str]) -> int:
    parser = CommandParser("info", DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("path", nargs="?", metavar="PATH", help="folder of a trace, or a Chrome trace")
    options = parser.parse_words(words)
    with bad_use(INFO.name):
        known = machine() if options.path is None else _known(load(options.path))
    show(json.dumps(known, indent=1, default=str) if options.json else "\n".join(_lines(known)))
    return FINE


def _known(trace: Trace) -> dict[str, Any]:
    return {**trace.meta, "frames": {name: f"{len(frame):,} rows" for name, frame in trace.frames.items()}}


def _lines(known: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A line per name, mappings and lists indented below theirs."""
    for name, value in known.items():
        match value:
            case Mapping() if value:
                yield f"{indent}{shown(str(name))}"
                yield from _lines(value, f"{indent}  ")
            case list() if value:
                yield f"{indent}{shown(str(name))}"
                yield from (f"{indent}  {shown(str(one))}" for one in value[:MOST])
                if len(value) > MOST:
                    yield f"{indent}  … {len(value) - MOST:,} more; --json has them all"
            case _:
                yield f"{indent}{shown(str(name)):<14} {shown(_text(value))}"


def _text(value: object) -> str:
    return "-" if value in (None, {}, []) else str(value)


INFO = Command("info", "tell what is installed here, or how a trace was made", "info trace", _run)
