"""Verb says all that nbkit needs to know about one verb; each is a file beside this one."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from nbkit.errors import nbkit_failed, please_report
from nbkit.trace.trace import Trace
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.options.generated import Option, OptionHolder, add_options, option_names

if TYPE_CHECKING:
    import pandas as pd

    from nbkit.views.static_html.view import View

PROGRAM = "python -m nbkit"
FINE, FINDINGS, BAD_USE = 0, 1, 2
FAILS = "exit with 1 if there are mismatches or findings"
ABOUT_PATTERNS = (
    "A PATTERN is a plain name, a glob (aten.add*) or re: and a regular expression; several are separated by commas or "
    "given by repeating the option."
)
# The runs of a repeated verb are counted by whoever repeats the step: a cell magic, or the steps of a script.
COUNTS = ("warmup", "repeats")


def own_failure(error: Mapping[str, Any]) -> str | None:
    """Returns one sentence on an error of nbkit itself that left nothing recorded; null where it is the cell's."""
    if error.get("failed_in_nbkit") is None:
        return None
    failure = nbkit_failed(error["type"], error["message"], error["failed_in_nbkit"])
    return please_report(f"{failure}, not the code of the cell; nothing was recorded.")


def why_empty(trace: Trace) -> str | None:
    """Returns one sentence on why the trace of a cell has no op; null where it has one."""
    if len(trace.ops):
        return None
    if error := trace.meta.get("error"):
        return own_failure(error) or (
            f"No op ran before the cell ended with {error['type']}, so the trace is empty and incomplete."
        )
    if skipped := trace.meta.get("skipped"):
        reasons = ", ".join(f"{count} x {reason}" for reason, count in skipped.items())
        return f"No op was recorded, but some were skipped: {reasons}."
    return "No op ran in the thread of this cell, so the trace is empty."


def nothing_in(*frames: str, why: str) -> Callable[[Trace], str | None]:
    """Returns what says why a trace has no row in any of these frames: `why` where ops ran, else why_empty()."""

    def nothing(trace: Trace) -> str | None:
        if any(len(trace.frames.get(name, ())) for name in frames):
            return None
        return why if len(trace.ops) or trace.meta.get("filtered_ops") else why_empty(trace)

    return nothing


@dataclass(frozen=True)
class Recorder:
    """How a verb records: as a cell magic, and in `python -m nbkit run`.

    `home` is the module and the name of the context manager, whose parameters are the options; it raises NbkitError on
    a value that it cannot use. Parameters in `only_in_code` take what no text can name; those in `traces` a trace,
    which a notebook has under a name, and all have in a folder. A verb that `is_repeated` times several runs of one
    step in one trace: it takes `warmup` and `repeats`, and has rounds(), begin_run() and end_run(). `nothing` says in
    one sentence why the trace of a cell holds nothing to show, null where it does.
    """

    home: str
    summary: str
    description: str
    notes: str = ""
    special: Mapping[str, Option] = field(default_factory=dict)
    only_in_code: Sequence[str] = ()
    traces: Sequence[str] = ()
    nothing: Callable[[Trace], str | None] = why_empty
    is_repeated: bool = False

    def function(self) -> Callable[..., AbstractContextManager[Trace]]:
        """Imports the context manager, where it is needed first."""
        found: Callable[..., AbstractContextManager[Trace]] = resolve_name(self.home)
        return found

    def add_options(self, holder: OptionHolder) -> None:
        """Give a parser the verb's own options."""
        add_options(holder, self.function(), self.special, leave_out=(*COUNTS, *self.only_in_code))

    def record(self, options: Namespace, notebook: Notebook | None = None) -> AbstractContextManager[Trace]:
        """Returns the context manager that yields the trace; `notebook` knows the names of traces, if there is one."""
        function = self.function()
        names = [name for name in option_names(function) if name not in self.only_in_code]
        values = {name: getattr(options, name) for name in names}
        if notebook is not None:
            values |= {name: notebook.trace_or_folder(values[name]) for name in self.traces if values[name]}
        return function(**values)


@dataclass(frozen=True)
class LineMagic:
    """A verb as a line magic: `run` gets the options and the notebook, and gives back what is shown.

    That is a trace or a frame, which has options that say where it is stored if `stores_result`, or texts by MIME type.
    `text` gives what is shown in place of a trace, null for its view. It raises NbkitError on what it cannot use.
    """

    description: str
    add_options: Callable[[OptionHolder], object]
    run: "Callable[[Namespace, Notebook], dict[str, str] | Trace | pd.DataFrame]"
    stores_result: bool = False
    text: Callable[[Namespace, Trace], str | None] | None = None


@dataclass(frozen=True)
class Outcome:
    """Holds what a subcommand prints, null for nothing, its exit status, and the traces that may hold findings."""

    text: str | None
    status: int = FINE
    traces: Sequence[Trace] = ()


@dataclass(frozen=True)
class Command:
    """A verb as a subcommand of `python -m nbkit`; `example` is a line that shows its use.

    `run` gets the options and a function that tells a person who waits what takes its time; it raises NbkitError on
    what it cannot use.
    """

    name: str
    summary: str
    example: str
    description: str
    add_options: Callable[[OptionHolder], object]
    run: Callable[[Namespace, Callable[[str], None]], Outcome]


@dataclass(frozen=True)
class Verb:
    """Says what the traces of a verb show, and how it is used. `nbkit.verbs.registry.VERBS` lists the verbs."""

    name: str
    view: "View | None" = None
    recorder: Recorder | None = None
    line: LineMagic | None = None
    command: Command | None = None
