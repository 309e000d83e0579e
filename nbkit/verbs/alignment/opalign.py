"""opalign runs two models, or two forms of one, and says where they first diverge."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from typing import Any, TypeVar

from nbkit import units
from nbkit.analysis.align.alone.outputs import unpaired_outputs
from nbkit.analysis.align.doubts import doubts, norms_out_of_training, not_known, one_sided
from nbkit.analysis.align.first_divergence import first_divergence, shards
from nbkit.analysis.align.frames import frames_of
from nbkit.analysis.align.traces.two_traces import aligned
from nbkit.errors import NbkitError, OptionError
from nbkit.findings.finding import DIVERGENCE, Finding, findings_frame, rule
from nbkit.progress import Progress
from nbkit.trace.executions.execution import Execution
from nbkit.trace.executions.values import KEPT_BYTES
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.accepted import WAYS, check_exporting, check_one_ran, check_side, checked_inputs
from nbkit.verbs.alignment.copying import check_modules, parameters_copied
from nbkit.verbs.alignment.sides import Given, execution_of, given_to, turned_into

VERB = "opalign"
Ran = TypeVar("Ran")
ADVICE = (
    "Look at the named ops and lines of both sides: what they read agrees, or differs by what the finding says. "
    "trace.alignment has the pairs before and after it."
)
# So many outputs of one side alone are named.
MOST_NAMES = 4


def opalign(  # noqa: PLR0913  options of a verb, by keyword
    left: Any,
    right: Any,
    *,
    inputs: Mapping[str, Any] | Sequence[Any] = (),
    right_inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    backward: bool = False,
    copy_parameters: bool = False,
    opset: int | None = None,
    dump: str | PathLike[str] | None = None,
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
            parameters, and a right ONNX model whose inputs have other names gets them by dtype and shape, then in
            order: the notes say which got which.
        backward: also runs the backward pass of torch models, from the loss that they return, else from the mean of
            their first result. Exported to ONNX, forward and backward are one graph with the gradients as outputs.
        copy_parameters: first loads the parameters of the left module into the right one, in place. They are paired by
            where they are used and by what they lead to, also transposed, split, fused; `meta["copied"]` has the pairs,
            `meta["not_copied"]` what was left as it is.
        opset: that of the ONNX model that is exported; the exporter's own if none is given.
        dump: a new folder that gets the graphs that the left model is turned into, each with its inputs by name:
            model.onnx and optimized.onnx; model.pt2 and its text; those of torch.compile as text, forward and backward.
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
    if right_inputs is None:
        given = _run("right", lambda: given_to(left, right, inputs))
    else:
        given = Given(inputs, checked_inputs(right_inputs, "right_inputs"))
    exporting: dict[str, Any] = {"opset": opset, "dump": check_exporting(right, opset, dump)}
    settings: dict[str, Any] = {"backward": backward, "kept_bytes": kept_bytes}
    forward: dict[str, Any] = {**settings, "backward": False}
    with Progress(lambda: "running the left side") as _:
        first = _run("left", lambda: execution_of(left, given.left, **settings))
    said: dict[str, Any] = {}
    if copy_parameters:
        with Progress(lambda: "pairing parameters") as _:
            said = parameters_copied(left, right, first, lambda: execution_of(right, given.right, **forward))
    with Progress(lambda: "running the right side") as _:
        if isinstance(right, str) and right in WAYS:
            second = _run("right", lambda: turned_into(right, left, given.right, **settings, **exporting))
        else:
            second = _run("right", lambda: execution_of(right, given.right, side="right", **settings))
    check_one_ran(first, second)
    trace = aligned_trace(first, second, name=name)
    if given.matched is not None:
        trace = _in_best_order(
            trace, given, lambda values: aligned_trace(first, execution_of(right, values, **settings), name=name)
        )
    notes = [*said.pop("notes", []), *trace.meta["notes"]]
    return Trace(trace.frames, {**trace.meta, **said, "notes": notes})


def _in_best_order(trace: Trace, given: Given, aligned_on: Callable[[Any], Trace]) -> Trace:
    """Returns the trace, and says which input of the right model got which.

    Where the two diverge and nothing but their order told inputs apart, it is that of the first order that agrees.
    """
    found, doubts = given.matched, trace.meta["doubts"]
    assert found is not None
    said = f"The right inputs were matched by name, dtype and shape: {found.text()}."
    names = "; ".join(", ".join(found.pairs[name] for name in group) for group in found.equal)
    if names:
        said = f"{said} Only their order told apart {names}, of one dtype and shape."
    if names and trace.meta["first_divergence"]:
        orders = [*found.orders()]
        for order in orders:
            other = _agreeing(trace, partial(aligned_on, given.inputs_in(order)))
            if other is not None:
                said = (
                    f"The right inputs are in another order: {order.text()}. So the two agree; as {found.text()} they "
                    f"diverge, and dtypes and shapes fit both. Give right_inputs to choose."
                )
                return Trace(other.frames, {**other.meta, "doubts": [*other.meta["doubts"], said]})
        tried = f"Of {units.counted(len(orders), 'other order')} tried none agrees; give right_inputs if it is another."
        return Trace(trace.frames, {**trace.meta, "doubts": [*doubts, f"{said} {tried}"]})
    return Trace(trace.frames, {**trace.meta, "notes": [said, *trace.meta["notes"]]})


def _agreeing(trace: Trace, aligned_again: Callable[[], Trace]) -> Trace | None:
    """Returns the trace of another order of inputs, if it agrees, and in more results; null where it does not."""
    try:
        other = aligned_again()
    except NbkitError:  # inputs of that order cannot be run
        return None
    is_better = other.meta["counts"]["="] > trace.meta["counts"]["="]
    return other if is_better and not other.meta["first_divergence"] and other.meta["complete"] else None


def _run(side: str, run: Callable[[], Ran]) -> Ran:
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
        "doubts": norms_out_of_training(alignment) if alignment.events else [*doubts(alignment)],
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
