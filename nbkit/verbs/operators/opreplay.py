"""opreplay runs captured calls again, as `%opreplay` and as `replay`. Its trace is shown as that of opdiff."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace

from nbkit.schema import REPLAYED, RUNS, TIMINGS
from nbkit.trace.trace import Trace
from nbkit.verbs.opdiff import OPDIFF
from nbkit.verbs.options.generated import Option, OptionHolder, add_options, option_names
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import FINDINGS, FINE, PROGRAM, Command, LineMagic, Outcome, Verb
from nbkit.views.sections.diff import diff_sections, verdict_sections
from nbkit.views.sections.section import Section, columns

SPEED = columns("op, first run: time, median: time, IQR: time, repeats: count, GFLOP/s: number, GB/s: number")
IN_CODE = ("parameters",)
SPECIAL = {
    "folder": Option(metavar="FOLDER", help="what opcapture wrote", read=absolute_path),
    "against": Option(
        metavar="WHAT", help="bits (the default), captured (what rounding allows), or a reference such as cpu:float64"
    ),
    "ops": Option(help="run only ops that fit"),
    "calls": Option(metavar="N", help="which calls of each op, from 0: 0, 0,2, 2:5 (default: all)", read=str),
    "phases": Option(metavar="PHASE", help="run only these: forward, backward, optimizer, other (default: all)"),
    "device": Option(help="where to run, such as cpu or cuda:0 (default: where each call was captured)"),
    "libraries": Option(metavar="NAME", help="namespaces whose ops may be called beside those of torch"),
}


def replay_outcome(trace: Trace, count: int) -> list[Section]:
    """Returns how many calls did the same to the bit, and the verdicts on their results."""
    meta = trace.meta
    kinds = columns("captured calls, run again, same bits", "count")
    row = [meta.get(name) for name in ("captured_calls", "replayed_calls", "identical_calls")]
    return [Section("Replay", kinds, [row]), *verdict_sections(trace, count)]


def replay_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the outcome, the worst differences where there are any, and the slowest calls."""
    outcome, verdicts = replay_outcome(trace, count), diff_sections(trace, count)
    worst = verdicts[-1:] if trace.meta.get("mismatches") else []
    return [*outcome, *worst, *_speed(trace, count)]


def _speed(trace: Trace, count: int) -> list[Section]:
    timings = TIMINGS.check(trace.frames.get("timings", TIMINGS.frame()))
    replayed = REPLAYED.check(trace.frames.get("replayed", REPLAYED.frame()))
    slowest = timings.merge(replayed, on="op_id").nlargest(count, "median_us")
    if not len(slowest):
        return []
    runs = RUNS.check(trace.frames.get("runs", RUNS.frame()))
    first = runs[runs["run"] == 0].set_index("op_id")["time_us"]
    rates = slowest[["flops_per_s", "bytes_per_s"]] / 1e9
    known = rates.astype(object).where(rates.notna(), None)
    told = [slowest[name] for name in ("median_us", "iqr_us", "repeats")]
    rows = zip(slowest["op"], map(first.get, slowest["op_id"]), *told, *known.to_numpy().T, strict=True)
    return [Section("Slowest calls", SPEED, list(rows))]


def _add_options(holder: OptionHolder) -> None:
    from nbkit.capture.operators.replay.opreplay import opreplay

    add_options(holder, opreplay, SPECIAL, leave_out=IN_CODE)


def _replay(options: Namespace) -> Trace:
    from nbkit.capture.operators.replay.opreplay import opreplay

    names = set(option_names(opreplay)).difference(IN_CODE)
    return opreplay(**{name: getattr(options, name) for name in names})


LINE = LineMagic(
    """\
Run captured calls again, each alone from the inputs it had, and compare what they do with what they did.

    %opreplay calls                                   to the bit
    %opreplay calls --device cuda --against captured  elsewhere, within rounding
    %opreplay calls --ops mm --repeats 50 --warmup 5  for their time

FOLDER is what %%opcapture wrote. Nothing in it is executed: values are bytes, and only registered ops are called.""",
    _add_options,
    lambda options, notebook: _replay(options),
    stores_result=True,
)


def _add_command_options(holder: OptionHolder) -> None:
    holder.add_argument("--save", type=absolute_path, metavar="TRACE_DIR", help="save the trace there")
    _add_options(holder)


def _run_command(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    trace = _replay(options)
    text = trace.summary()
    if options.save is not None:
        text += f"\n\nsaved to {trace.save(options.save)}"
    is_wrong = trace.meta["mismatches"] or trace.meta["unusable_calls"]
    return Outcome(text, FINDINGS if is_wrong else FINE, [trace])


COMMAND = Command(
    "replay",
    "run captured calls again and compare",
    "replay calls",
    f"""\
Run the calls again that opcapture saved, each alone from the inputs it had, and compare what they do with what they
did: on this machine, another one, another device or another version of torch.

    {PROGRAM} replay calls
        compares to the bit
    {PROGRAM} replay calls --device cuda --against captured
        compares as far as rounding allows
    {PROGRAM} replay calls --against cpu:float64
        compares with a float64 reference, as opdiff does
    {PROGRAM} replay calls --ops mm --repeats 50 --warmup 5 --save timed
        times calls, and saves the trace
    {PROGRAM} replay calls --export calls.txt
        also writes op, shapes and dtypes for BackendBench

Exit status: 0; 1 if a result differs or a call could not be run again; 2 if the folder cannot be read.""",
    _add_command_options,
    _run_command,
)
assert OPDIFF.view is not None
OPREPLAY = Verb(
    "opreplay",
    view=replace(
        OPDIFF.view,
        sections=replay_sections,
        outcome=replay_outcome,
        nothing="No call was run again; see trace.meta['skipped'].",
    ),
    line=LINE,
    command=COMMAND,
)
