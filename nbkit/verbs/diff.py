"""diff shows what differs between two traces, as a subcommand."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbkit.analysis.time.compare_times import compare_times
from nbkit.analysis.values.compare_values import compare_values
from nbkit.divergence.runs import has_values
from nbkit.errors import OptionError
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.verbs.load import load
from nbkit.verbs.options.generated import Option, OptionHolder, add_options
from nbkit.verbs.options.parser import whole_number
from nbkit.verbs.verb import FINDINGS, FINE, PROGRAM, Command, Outcome, Verb
from nbkit.views.sections.difference import (
    count_difference_sections,
    time_difference_sections,
    value_difference_sections,
)
from nbkit.views.sections.section import Section
from nbkit.views.sections.writers import to_text
from nbkit.views.summary.facts import facts

SPECIAL = {
    "left": Option(help="folder of a trace, or a Chrome trace"),
    "right": Option(help="another one"),
    "by": Option(help="what times are summed by (default: module)"),
    "clock": Option(help="device: the time of kernels (default: host)"),
}


@dataclass(frozen=True)
class Difference:
    """Holds what differs between two traces: tables, or the sentence that stands for none, and notes."""

    sections: list[Section]
    nothing: str
    notes: list[str]


def _add_options(holder: OptionHolder) -> None:
    add_options(holder, compare_times, SPECIAL)
    rows = "rows of each table (default: 20)"
    holder.add_argument("--head", type=whole_number(1), default=20, metavar="N", help=rows)


def _run(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    left, right = load(options.left), load(options.right)
    difference = difference_of(left, right, options.head, by=options.by, clock=options.clock)
    text = difference_text(difference, (options.left, left), (options.right, right))
    return Outcome(text, FINDINGS if difference.sections else FINE)


def difference_of(left: Trace, right: Trace, count: int, **of_times: Any) -> Difference:
    """Returns what differs, in tables of `count` rows at most; `of_times` are options of compare_times.

    Raises OptionError if only one of them is a timing.
    """
    kinds = {_is_timed(checked_trace(trace, name)) for name, trace in (("left", left), ("right", right))}
    if len(kinds) > 1:
        raise OptionError("Only one of the traces is a timing by optime; give two of one kind.")
    return _times(left, right, count, **of_times) if True in kinds else _records(left, right, count)


def difference_text(difference: Difference, left: tuple[str, Trace], right: tuple[str, Trace]) -> str:
    """Writes what differs between two traces, which come with their names."""
    sides = (("left", *left), ("right", *right))
    names = [f"{side:<6} {name}: {_title(trace)}" for side, name, trace in sides]
    lines = to_text(difference.sections) or ["", difference.nothing]
    notes = ["", *difference.notes] if difference.notes else []
    return "\n".join([*names, *lines, *notes])


def _is_timed(trace: Trace) -> bool:
    return trace.meta.get("verb") == "optime" or "samples" in trace.frames


def _times(left: Trace, right: Trace, count: int, **options: Any) -> Difference:
    times = compare_times(left, right, **options)
    is_judged = times["verdict"].notna().any()
    nothing = "Nothing differs beyond noise." if is_judged else "Both run the same; whether one is faster is not known."
    return Difference(time_difference_sections(times, count), nothing, times.attrs["notes"])


def _records(left: Trace, right: Trace, count: int) -> Difference:
    counted = count_difference_sections(left, right, count)
    if not all("tensors" in trace.frames and has_values(trace.tensors) for trace in (left, right)):
        note = "Values were not compared: record both with --values stats for that."
        return Difference(counted, "Calls, shapes, dtypes, modules, findings and verdicts are equal.", [note])
    values = compare_values(left, right)
    sections = [*value_difference_sections(values, count), *counted]
    return Difference(sections, "Nothing differs beyond rounding.", values.attrs["notes"])


def _title(trace: Trace) -> str:
    known = facts(trace)
    return ", ".join([known.title, *(f"{label} {value}" for label, value in known.figures)])


COMMAND = Command(
    "diff",
    "show what differs between two traces",
    "diff before after",
    f"""\
Show what differs between two traces: LEFT, the earlier or reference one, and RIGHT.

    {PROGRAM} diff before after
        did a change make a step slower, and where?
    {PROGRAM} diff --by op before after
        the same for every op in every module
    {PROGRAM} diff cpu_trace device_trace
        do both run the same ops on the same shapes and dtypes?

Two timings by optime are compared by self time, with the noise of their repeats: record both with --steps 10. Other
traces are compared by calls, shapes and dtypes, modules, findings and verdicts, and, where both were recorded with
--values stats, by the statistics of all tensors.

Exit status: 0 if nothing differs by more than noise, 1 if something does, 2 if a trace cannot be read.""",
    _add_options,
    _run,
)
DIFF = Verb("diff", command=COMMAND)
