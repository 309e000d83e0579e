"""load opens any file nbkit can read and recognizes its kind. As a subcommand, it shows it or rows of its frames."""

import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.query.sql import kinds_of, select
from nbkit.analysis.structure.recognise import recognise
from nbkit.analysis.time.op_times import op_times
from nbkit.errors import OptionError, TraceError, nearest
from nbkit.readers.chrome.rank_files import chrome_traces, ranks_of_files
from nbkit.readers.flight_recorder.dump import dump_files
from nbkit.readers.flight_recorder.reader import read_flight_recorders
from nbkit.readers.registry import KINDS, read
from nbkit.schema import TEXT
from nbkit.trace.atomic_write import writing
from nbkit.trace.calls.layout import HEAD
from nbkit.trace.captures import read_captures
from nbkit.trace.checks import frame_of
from nbkit.trace.job.job import Job
from nbkit.trace.job.ranks import rank_folders
from nbkit.trace.storage import META
from nbkit.trace.trace import Trace
from nbkit.verbs.conversion.job import converted_job
from nbkit.verbs.conversion.once import converted_once
from nbkit.verbs.options.generated import OptionHolder
from nbkit.verbs.options.parser import absolute_path, whole_number
from nbkit.verbs.ranks.findings import with_rank_findings
from nbkit.verbs.verb import FAILS, PROGRAM, Command, Outcome, Verb
from nbkit.views.flamegraph.held import held_svg, with_stack_timeline
from nbkit.views.flamegraph.panel import flame_panel
from nbkit.views.op_table.report_data import op_panel
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.plots import draw_memory
from nbkit.views.sections.writers import to_html
from nbkit.views.statements.memory import memory_sections, memory_statements
from nbkit.views.static_html.view import View
from nbkit.views.summary.names import shown

MOST_HOLDERS = 10


def load(path: str | PathLike[str]) -> Trace:
    """Reads a folder that `Trace.save()` wrote, a Chrome trace of torch.profiler or nbkit, a memory snapshot of
    torch.cuda, or the graphs of a OneFlow nn.Graph log, a Paddle program or an ONNX model, as `nbkit.opgraph()` gives
    them; or dumps of torch's flight recorder, one of each rank in a folder, with why the job hangs
    (`python -m nbkit hang`). Of a folder that `nbkit.opcapture` wrote it lists the calls (`captures`); their tensors
    are `nbkit.call_of(folder, record)`. A folder of the ranks of a job (`rank=0`, `rank=1`, ..., as several processes
    save them, or a Chrome trace for each) is one lazy trace over DuckDB: `ranks` is its frame, `sql("SELECT ...")` asks
    the others, `rank(3)` is the trace of one rank.

    A large Chrome trace is converted once, to a folder in nbkit's cache that is read from then on; a note in
    `meta["notes"]` names it. The content decides what it is; texts and snapshots may be gzipped. No code of a file
    runs. Raises TraceError if it is absent, damaged, newer or of another kind.
    """
    if not isinstance(path, str | PathLike):
        raise TraceError(f"There is no path {path!r}; give that of a folder of Trace.save() or of a file: {KINDS}.")
    path = Path(path)
    if _is_file(path):
        return _read(path)
    if (path / HEAD).is_file() and not (path / META).is_file():
        return read_captures(path)
    if rank_folders(path):
        return with_rank_findings(Job(path))
    if path.is_dir() and not [*path.glob(META), *path.glob(f"rank=*/{META}")] and dump_files(path):
        return read_flight_recorders(path)
    if path.is_dir() and not (path / META).is_file() and (files := chrome_traces(path)):
        if len(ranks := ranks_of_files(files)) > 1:
            return with_rank_findings(converted_job(path, ranks))
        raise TraceError(f"{path} is a folder of {len(files)} Chrome traces; give one of them, such as {files[0]}.")
    if not path.exists():
        folder = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise TraceError(f"There is no file or folder {path}{folder}; check the path.")
    return Trace.load(path)


def _read(path: Path) -> Trace:
    trace = converted_once(path) or read(path)
    return Trace(recognise(trace.frames), trace.meta) if "nodes" in trace.frames else trace


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:  # such as a name that is too long
        raise TraceError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}; give another path.") from error


CELL_WIDTH = 60
OP_TIMES = "op_times"  # no frame of a trace, but made of its own


def _rows_of(frame: pd.DataFrame, sort: str | None, columns: list[str] | None) -> pd.DataFrame:
    """Sorts the rows, numbers largest first and text by the alphabet, and picks the columns. Raises OptionError."""
    for name in [*(columns or []), *([sort] if sort else [])]:
        if name not in frame:
            raise OptionError(f"There is no column {name!r}; {nearest(name, map(str, frame))}")
    if sort:
        is_up = not pd.api.types.is_numeric_dtype(frame[sort])
        frame = frame.sort_values(sort, ascending=is_up, kind="stable")
    return frame[columns] if columns else frame


def _frame_text(frame: pd.DataFrame, width: int | None) -> str:
    """Writes the frame in blocks of that width; what could disturb a terminal is escaped, null is empty."""
    texts = pd.DataFrame({name: [_text(value) for value in values] for name, values in frame.items()}, dtype=TEXT)
    if not len(texts):
        return f"no rows; columns: {', '.join(map(str, frame))}"
    return str(texts.to_string(index=False, line_width=width, max_colwidth=CELL_WIDTH + 1))


def _text(value: object) -> str:
    if value is None or value is pd.NA or value != value:  # NaN
        return ""
    return f"{value:.6g}" if isinstance(value, float) else shown(str(value), CELL_WIDTH)


FRAME = "show rows of this frame instead: ops, tensors, modules, ...; op_times has forward and backward time of each op"


def _add_options(holder: OptionHolder) -> None:
    holder.add_argument("--frame", metavar="NAME", help=FRAME)
    holder.add_argument("--sort", metavar="COLUMN", help="numbers largest first, texts by the alphabet")
    holder.add_argument("--columns", type=_names, metavar="A,B", help="only these columns")
    holder.add_argument("--head", type=whole_number(1), metavar="N", help="N rows (default: 20; with --csv all)")
    holder.add_argument("--csv", type=_csv_path, metavar="FILE", help="write the rows to FILE; - is stdout")
    holder.add_argument("--save", type=absolute_path, metavar="FOLDER", help="save the trace there")
    holder.add_argument("--fail-on-findings", action="store_true", help=FAILS)
    holder.add_argument("path", metavar="PATH", help="folder of a trace or of the ranks of a job, or a Chrome trace")


def _csv_path(text: str) -> Path | str:
    return text if text == "-" else absolute_path(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _run(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    for name in ("sort", "columns", "head", "csv"):
        if options.frame is None and vars(options)[name] is not None:
            raise OptionError(f"--{name} is about the rows of one frame; give --frame, too, such as --frame ops.")
    trace = load(options.path)
    text = None
    if options.frame is not None:
        text = _rows_text(trace, options)
    elif options.save is None:
        text = trace.summary()
    if options.save is not None:
        trace.save(options.save)
    return Outcome(text, traces=[trace])


def _rows_text(trace: Trace, options: Namespace) -> str | None:
    """Returns the rows that the options ask for; null where they went to a file."""
    if isinstance(trace, Job) and options.frame != "ranks":
        return _job_rows_text(trace, options)
    frame = op_times(trace) if options.frame == OP_TIMES else frame_of(trace, options.frame)
    rows = _rows_of(frame, options.sort, options.columns)
    if options.csv is None:
        head = options.head or 20
        more = f"\n{units.counted(len(rows) - head, 'more row')}; --head N shows N" if len(rows) > head else ""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return _frame_text(rows.head(head), width) + more
    text = rows.head(options.head or len(rows)).to_csv(index=False, lineterminator="\n")
    if options.csv == "-":
        return text.rstrip("\n")
    with writing(options.csv, "the rows") as file:
        file.write(text)
    return None


def _job_rows_text(job: Job, options: Namespace) -> str | None:
    """Returns the same of all ranks of a job; what goes to a file, or as CSV to stdout, goes there in parts."""
    if options.frame == OP_TIMES:
        raise OptionError(f"op_times are of one process; give one rank, such as {job.folder}/rank={job.slowest}.")
    kinds = kinds_of(options.frame) if options.frame in job.files else {}
    sort = [{"column": options.sort, "descending": not kinds.get(options.sort)}] if options.sort else []
    query, values = select(job, options.frame, [], sort, options.columns or ())
    if options.csv is None:
        head, count = options.head or 20, job.counts[options.frame]
        more = f"\n{units.counted(count - head, 'more row')}; --head N shows N" if count > head else ""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return _frame_text(job.sql(f"{query} LIMIT {head}", values), width) + more
    limit = "" if options.head is None else f" LIMIT {options.head}"
    with nullcontext(sys.stdout) if options.csv == "-" else writing(options.csv, "the rows") as file:
        for number, rows in enumerate(job.database.batches(f"{query}{limit}", values)):
            rows.to_csv(file, index=False, lineterminator="\n", header=number == 0)
    return None


COMMAND = Command(
    "load",
    "show a trace",
    "load trace --frame ops --sort self_time_us",
    f"""\
Open a trace that nbkit saved, a Chrome trace of torch.profiler, a memory snapshot of torch.cuda, a dump of another
framework or an ONNX model, and show it.

    {PROGRAM} load trace
        shows what ran, how long, what was slow, what is wrong
    {PROGRAM} load trace --frame ops --sort self_time_us
        shows the slowest calls, with all columns
    {PROGRAM} load trace --frame ops --columns op,module,shape
    {PROGRAM} load trace --frame tensors --csv tensors.csv
        writes the rows for a spreadsheet; --csv - writes to stdout
    {PROGRAM} load trace --frame op_times --csv times.csv
        writes forward and backward time, inputs and outputs of each op
    {PROGRAM} load trace.json.gz --save trace
        turns a Chrome trace into a folder of Parquet files
    {PROGRAM} load job
        shows the ranks of a job; --frame asks all of them
    {PROGRAM} load snapshot.pickle
        shows what held the peak of a memory snapshot, line by line

Exit status: 0; 1 if --fail-on-findings and there are some; 2 if it cannot be read.""",
    _add_options,
    _run,
)


def _widget(trace: Trace) -> Any:
    from nbkit.views.widgets import sections_and_flame

    return sections_and_flame(trace, held_svg(trace) + to_html(memory_sections(trace, MOST_HOLDERS)))


def _panels(contents: Contents) -> list[Panel]:
    """Returns the flame graph of the stacks over time, and the table of its calls."""
    drawn = replace(contents, trace=with_stack_timeline(contents.trace), base=None)
    if not len(drawn.trace.ops):
        return []
    return [flame_panel(drawn), replace(op_panel(drawn), title="Calls of the flame graph")]


# Only memory snapshots are traces of this verb: other files have the view of the verb that could have recorded them.
VIEW = View(
    widget=_widget,
    sections=memory_sections,
    charts=lambda trace: [draw_memory(trace)] if len(trace.memory) else [],
    calls=lambda trace, count: "",
    panels=_panels,
    picture=held_svg,
    drawing=held_svg,
    totals=memory_sections,
    shows="blocks",
    nothing="The snapshot holds no memory: nothing was allocated on a device when it was taken.",
    statements=memory_statements,
)
LOAD = Verb("load", view=VIEW, command=COMMAND)
