"""hang says why a distributed job hangs, from the dumps of its ranks, as a subcommand; load shows such dumps alike."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nbkit.readers.flight_recorder.reader import read_flight_recorders
from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import OptionHolder
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import FAILS, PROGRAM, Command, Outcome, Verb
from nbkit.views.statements.ranks.hang import collective_sections, collective_statements
from nbkit.views.static_html.view import View


def _add_options(holder: OptionHolder) -> None:
    holder.add_argument(
        "--save", type=absolute_path, metavar="TRACE", help="save the calls and findings as a trace there"
    )
    holder.add_argument("--fail-on-findings", action="store_true", help=FAILS)
    holder.add_argument("folder", metavar="FOLDER", help="with a dump of each rank, or folders rank=N with one each")


def _run(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    trace = read_flight_recorders(Path(options.folder))
    if options.save is not None:
        trace.save(options.save)
    return Outcome(trace.summary(), traces=[trace])


COMMAND = Command(
    "hang",
    "say why a distributed job hangs, from its dumps",
    "hang nbkit-hang",
    f"""\
Compare the collectives that each rank of a job called, as torch's flight recorder dumped them, and say which rank
missed which call, or made another one: group, call, ranks, lines of code.

    {PROGRAM} hang nbkit-hang
        of a recording that a distributed error ended, or of dump_ranks()
    {PROGRAM} hang dumps
        dumps of any backend, pickles or JSON, whose names end in the rank
    {PROGRAM} hang dumps --save hang
        saves them as a trace, for load, report and mcp

Nothing in a dump is run: pickles of anything but plain data are refused.

Exit status: 0; 1 if --fail-on-findings and there are some; 2 if the dumps cannot be read.""",
    _add_options,
    _run,
)


def _widget(trace: Trace) -> Any:
    from nbkit.views.widgets import sections_alone

    return sections_alone(trace, collective_sections)


VIEW = View(
    widget=_widget,
    sections=collective_sections,
    charts=lambda trace: [],
    calls=lambda trace, count: "",
    panels=lambda contents: [],
    outcome=collective_sections,
    totals=lambda trace, count: [],
    shows="collectives",
    nothing="No process called a collective before it dumped.",
    statements=lambda trace: collective_statements(trace) or [],
)
HANG = Verb("hang", view=VIEW, command=COMMAND)
