"""opalign runs two models, or two forms of one, and says where they first diverge, as `%opalign` and as `align`."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nbkit import units
from nbkit.analysis.align.align import align
from nbkit.analysis.align.first_divergence import first_divergence
from nbkit.analysis.align.frames import frames_of
from nbkit.errors import NbkitError, OptionError
from nbkit.executions.execution import Execution
from nbkit.executions.values import KEPT_BYTES
from nbkit.progress import Progress
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.sides import WAYS, execution_of, failed, turned_into

VERB = "opalign"


def opalign(
    left: Any,
    right: Any,
    *,
    inputs: Mapping[str, Any] | Sequence[Any] = (),
    right_inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    backward: bool = False,
    kept_bytes: int = KEPT_BYTES,
    name: str | None = None,
) -> Trace:
    """Runs two models on the same inputs and returns their results side by side, with the first divergence.

    Each side is run once. Results are matched by their values (the same, reshaped, permuted, cast, part of a larger
    one), then by names, then by the graph. The right ops run once more on the left one's values: what then still
    differs begins there. The frame `alignment` has a row for each pair and for each result of one side alone, `results`
    has all results; `meta["first_divergence"]` says where the two first diverge, null where they agree.

    Args:
        left: what is right: a module or another callable, a program of torch.export, an ONNX model or its path, a trace
            recorded with values="stats" or its path.
        right: what is compared with it; likewise, or a word for what the left module is turned into: "onnx" (exported),
            "onnxruntime" (exported and optimized by it), "export" (torch.export, decomposed), "compile".
        inputs: arguments of both, by position or by name.
        right_inputs: arguments of the right one, where they are not the same.
        backward: also runs the backward pass of torch models, from the loss that they return, else from the mean of
            their first result.
        kept_bytes: values kept of each side, in bytes; of further results only features are known.
        name: what the trace is called where it is shown.

    Raises:
        OptionError: for sides or inputs that cannot be used. If one side alone fails while it runs, the trace has the
            results up to there.
    """
    given = inputs if right_inputs is None else right_inputs
    settings: dict[str, Any] = {"backward": backward, "kept_bytes": kept_bytes}
    with Progress(lambda: "running the left side") as _:
        first = _attempt("left", left, lambda: execution_of(left, inputs, **settings))
    with Progress(lambda: "running the right side") as _:
        if isinstance(right, str) and right in WAYS:
            second = _attempt("right", right, lambda: turned_into(right, left, given, **settings))
        else:
            second = _attempt("right", right, lambda: execution_of(right, given, **settings))
    if not first.results and not second.results:
        raise OptionError(first.error or second.error or "neither side has a result.")
    return aligned_trace(first, second, name=name)


def _attempt(side: str, source: Any, run: Callable[[], Execution]) -> Execution:
    try:
        return run()
    except NbkitError as error:
        return failed(side, source, error)


def aligned_trace(left: Execution, right: Execution, *, name: str | None = None) -> Trace:
    """Returns the trace of two executions side by side."""
    with Progress(lambda: f"aligning {len(left.results):,} and {len(right.results):,} results"):
        alignment = align(left, right)
        frames = frames_of(alignment)
        first = first_divergence(alignment)
    rows = frames["alignment"]
    counts = rows["mark"].value_counts()
    if first is not None:
        shift = len(left.results)
        first["row"] = _row_of(rows, first, shift)
        for side, moved in (("left", 0), ("right", shift)):
            if first[side] is not None:
                first[side]["result_id"] += moved
        first["right_id"] = None if first["right_id"] is None else first["right_id"] + shift
    failures = [
        f"the {side} one ended early: {run.error}" for side, run in (("left", left), ("right", right)) if run.error
    ]
    meta = {
        "verb": VERB,
        "name": name or f"{left.name} against {right.name}",
        "created": None,
        "source": "two executions",
        "complete": not failures,
        "error": "; ".join(failures) or None,
        "left": _side(left),
        "right": _side(right),
        "counts": {mark: int(counts.get(mark, 0)) for mark in ("=", "~", "-", "+")},
        "tolerance": alignment.tolerance,
        "first_divergence": first,
        "divergences": len(alignment.events),
        "notes": [*_notes("left", left), *_notes("right", right), *failures],
    }
    return Trace(frames, meta)


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


def _notes(side: str, run: Execution) -> list[str]:
    kept = [f"values of {run.values.left_out:,} results were not kept (kept_bytes)"] if run.values.left_out else []
    return [f"{side}: {note}" for note in (*run.notes, *kept)]
