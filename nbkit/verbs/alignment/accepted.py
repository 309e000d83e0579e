"""Says what a side of opalign and its inputs may be, and refuses the rest in one sentence, before anything runs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from nbkit.errors import OptionError
from nbkit.trace.checks import checked_count
from nbkit.trace.executions.execution import Execution
from nbkit.trace.trace import Trace

# What the left model can be turned into, for the right side.
WAYS = {
    "onnx": "what torch.onnx.export() makes of the left model, run by onnxruntime as it is",
    "onnxruntime": "the same, optimized by onnxruntime",
    "export": "what torch.export makes of the left model, decomposed to core ops",
    "compile": "the graphs that torch.compile makes of the left model",
}
ONNX_WAYS = ("onnx", "onnxruntime")
Inputs = Mapping[str, Any] | Sequence[Any]

ACCEPTED = "a model, a program of torch.export, an ONNX model or its path, or a trace recorded with values='stats'"
RECORDED = "give a trace of nbkit.optrace(values='stats')"
EARLY = "The run ended early "


def checked_inputs(inputs: Any, name: str) -> Inputs:
    """Returns inputs as arguments by position or by name: a tensor or array alone is the only one. Raises OptionError.

    `name` is that of the option.
    """
    if isinstance(inputs, Mapping):
        return inputs
    if hasattr(inputs, "shape") and hasattr(inputs, "dtype"):
        return (inputs,)
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Sequence):
        raise OptionError(
            f"{name} is of type {type(inputs).__name__}; give a tuple of the arguments, such as (x,), or a dict of "
            f"them by name."
        )
    return inputs


def check_side(side: str, source: Any) -> None:
    """Refuses what cannot be a side. `side` is left or right. Raises OptionError."""
    if isinstance(source, str | PathLike):
        if (side == "right" and source in WAYS) or os.path.exists(source):  # of any length
            return
        what = f"{ACCEPTED}, or one of the words {', '.join(WAYS)}" if side == "right" else ACCEPTED
        missing = f"there is no file or folder {os.fspath(source)!r}; give {what}."
        raise OptionError(f"the {side} side cannot be used: {missing}")
    if isinstance(source, Trace):
        checked_recording(source, side)
    elif not (callable(source) or isinstance(source, Execution) or _is_graph(source)):
        what = (
            f"a side of opalign is a model, a program of torch.export, an ONNX model or its path, or a trace, and this "
            f"is a {type(source).__name__}."
        )
        raise OptionError(f"the {side} side cannot be used: {what}")


def check_exporting(right: Any, opset: object, dump: object) -> Path | None:
    """Returns the folder for graphs, which is new or empty. Refuses what needs a right side made by opalign."""
    way = right if isinstance(right, str) and right in WAYS else None
    if opset is not None and way not in ONNX_WAYS:
        raise OptionError(f"opset={opset!r} is that of an export; give it with the right side {_any(ONNX_WAYS)}.")
    if opset is not None:
        checked_count("opset", opset)
    if dump is None:
        return None
    if way is None:
        raise OptionError(f"dump writes the graphs that the left model is turned into: give it with {_any(WAYS)}.")
    if not isinstance(dump, str | PathLike):
        raise OptionError(f"dump is of type {type(dump).__name__}; give the path of a folder.")
    folder = Path(dump).expanduser().absolute()
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise OptionError(f"dump={str(dump)!r} is there, and is no empty folder; give the path of a new one.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"dump={str(dump)!r} cannot be made: {error.strerror}; give the path of a folder.") from error
    return folder


def _any(words: Iterable[str]) -> str:
    *others, last = map(repr, words)
    return f"{', '.join(others)} or {last}"


def is_onnx(source: Any) -> bool:
    """Returns whether a side is an ONNX model, or what torch.onnx.export() returns."""
    return hasattr(source, "ir_version") or hasattr(source, "model_proto")


def _is_graph(source: Any) -> bool:
    return is_onnx(source) or hasattr(source, "graph_module")


def checked_recording(trace: Trace, side: str) -> Trace:
    """Returns a trace that has the statistics of its tensors; else raises OptionError."""
    verb = trace.meta.get("verb") or "nbkit.load"
    missing = next((name for name in ("ops", "tensors") if name not in trace.frames), None)
    if missing is not None:
        raise OptionError(
            f"the {side} side is a trace of {verb} without the frame {missing!r}; {RECORDED}, or a model."
        )
    if not trace.frames["tensors"]["nan_count"].notna().any():
        raise OptionError(
            f"the {side} side is a trace of {verb} without statistics of its tensors, so there is nothing to compare; "
            f"record it with nbkit.optrace(values='stats')."
        )
    return trace


def check_one_ran(left: Execution, right: Execution) -> None:
    """Refuses two sides of which none ran to its end, or none has a result. Raises OptionError with what both raised.

    A trace that ended early when it was recorded has been recorded on purpose: it is no failure.
    """
    failed = [side for side in (left, right) if side.error and side.origin != "trace"]
    if len(failed) == 2:
        raise OptionError(f"neither side ran to its end: {_raised('left', left)}; {_raised('right', right)}; "
                          f"give inputs with which both run.")  # fmt: skip
    if not left.results and not right.results:
        raise OptionError(left.error or right.error or "neither side has a result.")


def _raised(side: str, run: Execution) -> str:
    error = str(run.error).removesuffix(".")
    return f"the {side} one {'ended early ' if error.startswith(EARLY) else 'failed: '}{error.removeprefix(EARLY)}"
