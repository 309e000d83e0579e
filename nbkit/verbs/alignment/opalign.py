"""opalign runs two models, or two forms of one, and says where they first diverge, as `%opalign` and as `align`."""

from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbkit import units
from nbkit.analysis.align.alone.outputs import unpaired_outputs
from nbkit.analysis.align.doubts import doubts, not_known, one_sided
from nbkit.analysis.align.first_divergence import first_divergence, shards
from nbkit.analysis.align.frames import frames_of
from nbkit.analysis.align.traces.two_traces import aligned
from nbkit.errors import NbkitError, OptionError
from nbkit.findings.finding import DIVERGENCE, Finding, findings_frame, rule
from nbkit.progress import Progress
from nbkit.trace.executions.arrays import read_arrays
from nbkit.trace.executions.execution import Execution
from nbkit.trace.executions.values import KEPT_BYTES
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.accepted import WAYS, check_one_ran, check_side, checked_inputs
from nbkit.verbs.alignment.copying import check_modules, parameters_copied
from nbkit.verbs.alignment.sides import execution_of, inputs_beside, turned_into
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.options.generated import OptionHolder
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import FINDINGS, FINE, PROGRAM, Command, LineMagic, Outcome, Verb
from nbkit.views.alignment.text import side_by_side_text
from nbkit.views.alignment_view import ALIGNMENT_VIEW
from nbkit.views.report.opreport import opreport

VERB = "opalign"
ADVICE = (
    "Look at the named ops and lines of both sides: what they read agrees, or differs by what the finding says. "
    "trace.alignment has the pairs before and after it."
)
# So many outputs of one side alone are named.
MOST_NAMES = 4


def opalign(
    left: Any,
    right: Any,
    *,
    inputs: Mapping[str, Any] | Sequence[Any] = (),
    right_inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    backward: bool = False,
    copy_parameters: bool = False,
    kept_bytes: int = KEPT_BYTES,
    name: str | None = None,
) -> Trace:
    """Runs two models on the same inputs and returns their results side by side, with the first divergence.

    A module is called under a recorder and once more without one, whose outputs are compared, too: what a call prints
    or takes from an iterator happens twice. Results are matched by their values (the same, reshaped, permuted, cast,
    part of a larger one), then by names, then by the graph. The right ops run once more on the left one's values: what
    then still differs begins there. The frame `alignment` has a row for each pair and for each result of one side
    alone, `results` has all results; `meta["first_divergence"]` says where the two first diverge, null where they
    agree.

    Args:
        left: what is right: a module or another callable, a program of torch.export, an ONNX model or its path, a trace
            recorded with values="stats" or its path.
        right: what is compared with it; likewise, or a word for what the left module is turned into: "onnx" (exported),
            "onnxruntime" (exported and optimized by it), "export" (torch.export, decomposed), "compile".
        inputs: arguments of both, by position or by name; a tensor alone is the only one.
        right_inputs: arguments of the right one, where they are not the same. Else its tensors are on the device of its
            parameters.
        backward: also runs the backward pass of torch models, from the loss that they return, else from the mean of
            their first result.
        copy_parameters: first loads the parameters of the left module into the right one, in place. They are paired by
            where they are used and by what they lead to, also transposed, split, fused; `meta["copied"]` has the pairs,
            `meta["not_copied"]` what was left as it is.
        kept_bytes: values kept of each side, in bytes; of further results only features are known.
        name: what the trace is called where it is shown.

    Raises:
        OptionError: for sides or inputs that cannot be used, and if both sides fail while they run. If one side alone
            does, the trace has the results up to there.
    """
    inputs = checked_inputs(inputs, "inputs")
    if copy_parameters:
        check_modules(left, right)
    check_side("left", left)
    check_side("right", right)
    given = inputs_beside(right, inputs) if right_inputs is None else checked_inputs(right_inputs, "right_inputs")
    settings: dict[str, Any] = {"backward": backward, "kept_bytes": kept_bytes}
    forward: dict[str, Any] = {**settings, "backward": False}
    with Progress(lambda: "running the left side") as _:
        first = _run("left", lambda: execution_of(left, inputs, **settings))
    said: dict[str, Any] = {}
    if copy_parameters:
        with Progress(lambda: "pairing parameters") as _:
            said = parameters_copied(left, right, first, lambda: execution_of(right, given, **forward))
    with Progress(lambda: "running the right side") as _:
        if isinstance(right, str) and right in WAYS:
            second = _run("right", lambda: turned_into(right, left, given, **settings))
        else:
            second = _run("right", lambda: execution_of(right, given, side="right", **settings))
    check_one_ran(first, second)
    trace = aligned_trace(first, second, name=name)
    notes = [*said.pop("notes", []), *trace.meta["notes"]]
    return Trace(trace.frames, {**trace.meta, **said, "notes": notes})


def _run(side: str, run: Callable[[], Execution]) -> Execution:
    """Runs a side. Raises OptionError that names it, where it cannot be run at all."""
    try:
        return run()
    except NbkitError as error:
        raise OptionError(f"the {side} side cannot be used: {error}") from error


def aligned_trace(left: Execution, right: Execution, *, name: str | None = None) -> Trace:
    """Returns the trace of two executions side by side."""
    with Progress(lambda: f"aligning {len(left.results):,} and {len(right.results):,} results"):
        alignment = aligned(left, right)
        left, right = alignment.left.execution, alignment.right.execution
        frames = frames_of(alignment)
        first = first_divergence(alignment)
        held = shards(alignment)
        extra = unpaired_outputs(alignment.left, alignment.right, alignment.matches)
    rows = frames["alignment"]
    counts = rows["mark"].value_counts()
    if first is not None:
        shift = len(left.results)
        first["row"] = _row_of(rows, first, shift)
        for side, moved in (("left", 0), ("right", shift)):
            if first[side] is not None:
                first[side]["result_id"] += moved
        first["right_id"] = None if first["right_id"] is None else first["right_id"] + shift
        frames["findings"] = findings_frame(divergence(first))
    failures = [
        f"the {side} one ended early: {run.error}" for side, run in (("left", left), ("right", right)) if run.error
    ]
    meta = {
        "verb": VERB,
        "name": name or f"{left.name} against {right.name}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": "two executions",
        "complete": not failures,
        "error": "; ".join(failures) or None,
        "left": _side(left),
        "right": _side(right),
        "counts": {mark: int(counts.get(mark, 0)) for mark in ("=", "~", "-", "+")},
        "tolerance": alignment.tolerance,
        "first_divergence": first,
        "divergences": len(alignment.events),
        "not_known": not_known(alignment),
        "doubts": [] if alignment.events else [*doubts(alignment)],
        "one_sided": None if alignment.events else one_sided(alignment),
        "notes": [*_notes("left", left, extra[0]), *_notes("right", right, extra[1]), *_shard_notes(held), *failures],
    }
    return Trace(frames, meta)


@rule("error", names=(DIVERGENCE,), verbs=("opalign",))
def divergence(first: dict[str, Any]) -> Iterator[Finding]:
    """Two models, or two forms of one, differ beyond rounding: the place where they first do."""
    left, right = first["left"] or {}, first["right"] or {}
    place = left or right
    state = place["name"] if place["kind"] in ("parameter", "buffer") else None
    names = {side: about.get("name") for side, about in (("left", left), ("right", right))}
    yield divergence.finding(
        message=f"{place['name']}: {first['message']}",
        advice=ADVICE,
        op=place["op"],
        parameter=state,
        module=place["module"],
        source=place["source"],
        evidence={**names, "kind": first["kind"], "error": first["error"], "alignment_row": first["row"]},
    )


def _row_of(rows: Any, first: dict[str, Any], shift: int) -> int | None:
    """Returns the row of the pair at which a divergence shows, else of the place on the side that has one."""
    left, right = first["left_id"], first["right_id"]
    if left is None and right is None:
        left = first["left"]["result_id"] if first["left"] else None
        right = first["right"]["result_id"] if first["right"] and left is None else None
    chosen = (
        rows["left_id"].eq(left).fillna(False) if left is not None else rows["right_id"].eq(right + shift).fillna(False)
    )
    if left is not None and right is not None:
        chosen &= rows["right_id"].eq(right + shift).fillna(False)
    numbers = rows.index[chosen]
    return int(numbers[0]) if len(numbers) else None


def _side(run: Execution) -> dict[str, Any]:
    return {"name": run.name, "origin": run.origin, "results": len(run.results), "error": run.error, **run.meta}


def _notes(side: str, run: Execution, extra: Collection[int]) -> list[str]:
    left_out = run.values.left_out
    kept = [f"values of {left_out:,} results were not kept (kept_bytes): their statistics were compared"]
    alone = [name for name, number in run.outputs.items() if number in extra]
    more = f"{', '.join(alone[:MOST_NAMES])}{', ...' if len(alone) > MOST_NAMES else ''}"
    returned = [f"the other side does not return {more}, so that nothing was compared with it"] if alone else []
    return [f"{side}: {note}" for note in (*run.notes, *(kept if left_out else []), *returned)]


def _shard_notes(held: Sequence[str]) -> list[str]:
    more = f"; so it is with {units.count(len(held) - 1)} more" if len(held) > 1 else ""
    return [f"{held[0]}{more}: it was compared with that part of the other side"] if held else []


def _add_line_options(holder: OptionHolder) -> None:
    holder.add_argument("left", metavar="LEFT", help="what is right: a name of this notebook, or a path")
    right = f"what is compared with it: likewise, or {', '.join(WAYS)}: what the left module is turned into"
    holder.add_argument("right", metavar="RIGHT", help=right)
    inputs = "names of the inputs of both, in their order, or the name of a dict, tuple or list of them"
    holder.add_argument("--inputs", nargs="+", default=[], metavar="NAME", help=inputs)
    copying = "first load the left module's parameters into the right one, in place"
    holder.add_argument("--copy-parameters", action="store_true", help=copying)
    holder.add_argument("--backward", action="store_true", help="also run the backward pass of torch models")
    holder.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")


def _run_line(options: Namespace, notebook: Notebook) -> Trace:
    right = options.right if options.right in WAYS else notebook.source(options.right)
    return opalign(
        notebook.source(options.left),
        right,
        inputs=_inputs(notebook, options.inputs),
        backward=options.backward,
        copy_parameters=options.copy_parameters,
        name=options.name,
    )


def _inputs(notebook: Notebook, names: Sequence[str]) -> Mapping[str, Any] | Sequence[Any]:
    values = [_named(notebook, name) for name in names]
    if len(values) == 1 and isinstance(values[0], Mapping | tuple | list):
        return values[0]
    return values


def _named(notebook: Notebook, name: str) -> Any:
    value = notebook.value(name)
    if value is None:
        raise NbkitError(f"there is no {name!r} in this notebook, which --inputs names; give names of tensors.")
    return value


LINE = LineMagic(
    """\
Run two models on the same inputs, put their results side by side, and say where they first diverge.

    %opalign mine theirs --inputs ids      two implementations of a model
    %opalign model onnx --inputs ids       a model, and exported to ONNX
    %opalign 'a.onnx' 'b.onnx' --inputs d  two ONNX models; d: arrays by name
    %opalign hf own --inputs x --copy-parameters   own: gets hf's weights
    %opalign before after                  two steps of optrace, values="stats"

LEFT and RIGHT are names of this notebook (a module, a program of torch.export, an ONNX model, a trace), or the paths of
an ONNX model or a saved trace, in quotes where they have blanks.""",
    _add_line_options,
    _run_line,
    stores_result=True,
)


def _add_command_options(holder: OptionHolder) -> None:
    holder.add_argument("left", metavar="LEFT", help="an ONNX model, or the folder of a trace: what is right")
    holder.add_argument("right", metavar="RIGHT", help="what is compared with it, likewise")
    inputs = "numpy file with an array for each input of ONNX models, by its name (numpy.savez)"
    holder.add_argument("--inputs", type=absolute_path, metavar="FILE.npz", help=inputs)
    output = "write the HTML file FILE instead of text; one that is there is replaced"
    holder.add_argument("-o", "--output", type=absolute_path, metavar="FILE", help=output)
    holder.add_argument("--save", type=absolute_path, metavar="FOLDER", help="save the trace there")
    holder.add_argument("--pairs", action="store_true", help="write every pair as text, side by side")


def _run_command(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    for path in (options.left, options.right):
        if not Path(path).exists():
            raise OptionError(f"there is no file {path}; give an ONNX model or the folder of a saved trace.")
    progress(f"running {options.left} and {options.right}")
    inputs = {} if options.inputs is None else read_arrays(options.inputs)
    trace = opalign(Path(options.left), Path(options.right), inputs=inputs)
    if options.save is not None:
        trace.save(options.save)
    status = FINDINGS if trace.meta["first_divergence"] or trace.meta["error"] else FINE
    if options.output is not None:
        progress(f"writing {options.output}")
        opreport(trace, path=options.output)
        size = units.data_size(options.output.stat().st_size)
        return Outcome(f"{options.output}: {size}", status, [trace])
    text = side_by_side_text(trace) if options.pairs else trace.summary()
    return Outcome(text if options.save is None else None, status, [trace])


COMMAND = Command(
    "align",
    "put two executions side by side and say where they first diverge",
    "align a.onnx b.onnx --inputs inputs.npz",
    f"""\
Run two ONNX models on the same inputs, or take two recorded steps with value statistics, and put their results side by
side.

    {PROGRAM} align a.onnx b.onnx --inputs inputs.npz
        says where they first diverge, and what of it is known
    {PROGRAM} align a.onnx b.onnx --inputs inputs.npz --pairs
        writes every pair of results
    {PROGRAM} align a.onnx b.onnx --inputs inputs.npz -o report.html
        writes a page with the pairs and both graphs

Exit status: 0 if they agree; 1 if they diverge or one of them ended early; 2 if a file cannot be used.""",
    _add_command_options,
    _run_command,
)
OPALIGN = Verb("opalign", view=ALIGNMENT_VIEW, line=LINE, command=COMMAND)
