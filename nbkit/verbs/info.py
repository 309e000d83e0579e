"""info shows what is installed here, or what is known about a trace, as a subcommand."""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nbkit.trace.job.job import Job
from nbkit.trace.trace import Trace
from nbkit.verbs.load import load
from nbkit.verbs.options.generated import OptionHolder
from nbkit.verbs.verb import PROGRAM, Command, Outcome, Verb
from nbkit.views.summary.names import shown

# Of a list that is shown line by line.
MOST = 20


def _add_options(holder: OptionHolder) -> None:
    holder.add_argument("--json", action="store_true", help="as JSON")
    holder.add_argument("path", nargs="?", metavar="PATH", help="folder of a trace, or a Chrome trace")


def _run(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    known = _machine() if options.path is None else _known(load(options.path))
    return Outcome(json.dumps(known, indent=1, default=str) if options.json else "\n".join(_lines(known)))


def _machine() -> dict[str, str]:
    from nbkit.capture.recorder.machine import machine  # torch, which a trace does without

    return machine()


def _known(trace: Trace) -> dict[str, Any]:
    counts = {name: len(frame) for name, frame in trace.frames.items()} | (
        trace.counts if isinstance(trace, Job) else {}
    )
    return {**trace.meta, "frames": {name: f"{count:,} rows" for name, count in counts.items()}}


def _lines(known: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yields a line per name, mappings and lists indented below theirs."""
    for name, value in known.items():
        match value:
            case Mapping() if value:
                yield f"{indent}{shown(str(name))}"
                yield from _lines(value, f"{indent}  ")
            case list() if value:
                yield f"{indent}{shown(str(name))}"
                yield from (f"{indent}  {shown(str(item))}" for item in value[:MOST])
                if len(value) > MOST:
                    yield f"{indent}  … {len(value) - MOST:,} more; --json has them all"
            case _:
                yield f"{indent}{shown(str(name)):<14} {shown(_text(value))}"


def _text(value: object) -> str:
    return "-" if value in (None, {}, []) else str(value)


COMMAND = Command(
    "info",
    "show what is installed here, or how a trace was made",
    "info trace",
    f"""\
Show versions, the recorder and the devices of this machine; of a trace, its frames and all that is known about it.

    {PROGRAM} info                 for a bug report
    {PROGRAM} info trace           when and how was it recorded?
    {PROGRAM} info trace --json    the same for another program""",
    _add_options,
    _run,
)
INFO = Verb("info", command=COMMAND)
