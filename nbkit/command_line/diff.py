"""`python -m nbkit diff`: what differs between two traces."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from nbkit.analysis.time.compare_times import compare_times
from nbkit.analysis.values.compare_values import compare_values
from nbkit.command_line.command import FINDINGS, FINE, PROGRAM, Command
from nbkit.command_line.parser import CommandParser, bad_use
from nbkit.command_line.terminal import show
from nbkit.divergence.runs import has_values
from nbkit.errors import OptionError
from nbkit.load import load
from nbkit.trace.trace import Trace
from nbkit.verbs.parser import whole_number
from nbkit.views.sections.difference import (
    count_difference_sections,
    time_difference_sections,
    value_difference_sections,
)
from nbkit.views.sections.section import Section
from nbkit.views.sections.writers import to_text
from nbkit.views.summary.facts import facts

DESCRIPTION = f"""\
What differs between two traces: LEFT, the earlier or reference one, and RIGHT.

    {PROGRAM} diff before after                  did a change make a step slower, and where?
    {PROGRAM} diff --by op before after          the same for every op in every module
    {PROGRAM} diff cpu_trace device_trace        do both run the same ops on the same shapes and dtypes?

Of two timings by optime, self times are compared, with the noise of their repeats: record both with --steps 10. Of
other traces calls, shapes and dtypes, modules, findings and verdicts are, and, where both were recorded with
--values stats, the statistics of all tensors.

Exit status: 0 if nothing differs by more than noise, 1 if something does, 2 if a trace cannot be read."""


def _parser() -> CommandParser:
    parser = CommandParser("diff", DESCRIPTION)
    parser.add_argument("--by", choices=("module", "op"), default="module", help="what times are summed by")
    parser.add_argument("--clock", choices=("host", "device"), default="host", help="device: the time of kernels")
    parser.add_argument(
        "--head", type=whole_number(1), default=20, metavar="N", help="rows of each table (default: 20)"
    )
    parser.add_argument("left", metavar="LEFT", help="folder of a trace, or a Chrome trace")
    parser.add_argument("right", metavar="RIGHT", help="likewise")
    return parser


@dataclass(frozen=True)
class Difference:
    """What is told of two traces: tables of what differs, or the sentence that stands for none, and notes."""

    sections: list[Section]
    nothing: str
    notes: list[str]


def _run(words: Sequence[str]) -> int:
    options = _parser().parse_words(words)
    with bad_use(DIFF.name):
        left, right = load(options.left), load(options.right)
        kinds = {_is_timed(trace) for trace in (left, right)}
        if len(kinds) > 1:
            raise OptionError("Only one of the traces is a timing by optime; give two of one kind.")
        found = _times(left, right, options) if True in kinds else _records(left, right, options.head)
    names = [f"{side:<6} {name}: {_title(trace)}" for side, name, trace in _sides(options, left, right)]
    lines = to_text(found.sections) or ["", found.nothing]
    show("\n".join([*names, *lines, *(["", *found.notes] if found.notes else [])]))
    return FINDINGS if found.sections else FINE


def _is_timed(trace: Trace) -> bool:
    return trace.meta.get("verb") == "optime" or "samples" in trace.frames


def _times(left: Trace, right: Trace, options: Namespace) -> Difference:
    times = compare_times(left, right, by=options.by, clock=options.clock)
    is_judged = times["verdict"].notna().any()
    nothing = "Nothing differs beyond noise." if is_judged else "Both run the same; whether one is faster is not known."
    return Difference(time_difference_sections(times, options.head), nothing, times.attrs["notes"])


def _records(left: Trace, right: Trace, count: int) -> Difference:
    counted = count_difference_sections(left, right, count)
    if not all("tensors" in trace.frames and has_values(trace.tensors) for trace in (left, right)):
        note = "Values were not compared: record both with --values stats for that."
        return Difference(counted, "Calls, shapes, dtypes, modules, findings and verdicts are equal.", [note])
    values = compare_values(left, right)
    sections = [*value_difference_sections(values, count), *counted]
    return Difference(sections, "Nothing differs beyond rounding.", values.attrs["notes"])


def _sides(options: Namespace, left: Trace, right: Trace) -> tuple[tuple[str, str, Trace], ...]:
    return ("left", options.left, left), ("right", options.right, right)


def _title(trace: Trace) -> str:
    known = facts(trace)
    return ", ".join([known.title, *(f"{label} {value}" for label, value in known.figures)])


DIFF = Command("diff", "tell what differs between two traces", "diff before after", _run)
