"""compare_exports puts a model beside several exports of it: a row for each, one table for all."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from nbkit.errors import OptionError
from nbkit.schema import EXPORTS
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.accepted import ONNX_WAYS, WAYS, check_side
from nbkit.verbs.alignment.opalign import opalign

REFUSED = "the right side cannot be used: "


def compare_exports(
    model: Any,
    exports: Sequence[Any] = tuple(WAYS),
    *,
    inputs: Mapping[str, Any] | Sequence[Any] = (),
    backward: bool = False,
    opset: int | None = None,
    dump: str | PathLike[str] | None = None,
) -> pd.DataFrame:
    """Aligns a model with each of its exports, and returns a row for each: whether they agree, and where not.

    The columns are those of the frame `exports`. What cannot be exported or run has its reason in `error`.

    Args:
        model: what is right: a module.
        exports: what is compared with it: "onnx", "onnxruntime", "export", "compile", an ONNX model or its path, or
            another side of `opalign`.
        inputs: arguments of all, by position or by name; a tensor alone is the only one.
        backward: also compares the backward pass; an ONNX model that is given has none.
        opset: that of the ONNX models that are exported.
        dump: a new folder that gets the graphs of each, in a folder of its own.

    Raises:
        OptionError: for exports that are none.
    """
    if isinstance(exports, str | bytes) or not isinstance(exports, Sequence) or not exports:
        raise OptionError(f"exports is {exports!r}; give a list of what to compare, such as {[*WAYS]!r}.")
    for export in exports:
        check_side("right", export)
    rows = []
    for number, export in enumerate(exports):
        way = export if isinstance(export, str) and export in WAYS else None
        options: dict[str, Any] = {"opset": opset if way in ONNX_WAYS else None}
        if dump is not None and way is not None:
            options["dump"] = Path(dump) / way
        try:
            rows.append(_row(way, opalign(model, export, inputs=inputs, backward=backward, **options)))
        except OptionError as error:
            name = way or (str(export) if isinstance(export, str | PathLike) else f"export {number}")
            rows.append({"export": name, "verdict": "not run", "error": str(error).removeprefix(REFUSED)})
    return EXPORTS.frame(rows)


def _row(way: str | None, trace: Trace) -> dict[str, Any]:
    """Returns the row of one export."""
    meta, rows, results = trace.meta, trace.frames["alignment"], trace.frames["results"]
    first, outputs = meta["first_divergence"], results.loc[results["is_output"], "result_id"]
    returned = rows[rows["left_id"].isin(outputs) & rows["right_id"].isin(outputs)]
    is_open = meta["error"] or meta["doubts"] or meta["counts"]["~"] or not meta["counts"]["="]
    nodes = trace.frames["nodes"]
    return {
        "export": way or meta["right"]["name"],
        "verdict": "diverges" if first else "not known" if is_open else "agrees",
        "first_divergence": first and f"{(first['left'] or first['right'])['name']}: {first['message']}",
        "output_error": returned["output_error"].max(),
        "op_count": int((nodes["kind"].eq("op") & nodes["graph"].str.startswith("right: ")).sum()),
        "equal_count": meta["counts"]["="],
        "different_count": meta["counts"]["~"],
        "left_only_count": meta["counts"]["-"],
        "right_only_count": meta["counts"]["+"],
        "error": meta["error"],
    }
