"""Writes a Python script that runs one call of a recorded step alone, in a fresh process."""

import base64
import json
import math
from pathlib import Path
from typing import Any

import torch

from nbkit.capture.calls.call_of import built_from, op_of
from nbkit.capture.calls.script_body import BODY
from nbkit.capture.replay.op_traits import traits_of
from nbkit.errors import NbkitError
from nbkit.numerics.difference_patterns import pattern_text
from nbkit.schema import DIFFS
from nbkit.trace.captured_calls import captured_call
from nbkit.trace.captured_values import CapturedCall, CapturedTensor, contiguous
from nbkit.trace.trace import Trace

# Inputs up to so many bytes stand in the script itself.
EMBEDDED_BYTES = 32 * 1024
LINE = 100


def script_of(trace: Trace, op_id: int, folder: str | Path = ".") -> str:
    """Returns the script as text: it needs torch alone, and nbkit for faults of a simulated device.

    It runs the op on the device of the step, if that is there, and on the CPU in float64 from the same inputs, and
    prints both, the largest difference, and whether that is the one of the trace. Inputs of more than 32 KiB are
    written to a file in `folder` (with torch.save) that the script loads with weights_only. Raises OptionError if the
    call was not kept, NbkitError if the file cannot be written.
    """
    call = captured_call(trace, op_id)
    traits = traits_of(op_of(call.op))
    size = sum(len(tensor.data) for tensor in call.tensors)
    where = None if size <= EMBEDDED_BYTES else _written(call, Path(folder))
    head = [
        f"# {call.op}, op {op_id} of a recorded step, alone: from the inputs it had there.",
        *_patterns(trace, op_id),
        *(["import base64", ""] if where is None and call.tensors else []),
        "import torch",
        *call.setup,
        "",
        f"OP = torch.ops.{call.op}",
        f"DEVICE = {call.device!r}  # where it ran",
        "# Position among the results, name, and largest |actual - expected| in the trace.",
        f"RECORDED = {_recorded(call)}",
        f"WRITTEN = {traits.written!r}, {traits.written_names!r}  # arguments that it writes to",
        f"VALUES = {traits.values!r}  # so many of what it returns are values",
        *_inputs(call, where),
        f"ARGS = {_text(list(call.args))}",
        f"KWARGS = {{{', '.join(f'{name!r}: {_text(value)}' for name, value in call.kwargs.items())}}}",
        "",
    ]
    return "\n".join(head) + BODY


def _patterns(trace: Trace, op_id: int) -> list[str]:
    """Returns what the wrong results of a call look like, as comments."""
    diffs = trace.frames.get("diffs", DIFFS.frame())
    known = diffs[(diffs["op_id"] == op_id) & diffs["pattern"].notna()]
    parts = zip(known["role"], known["position"], known["pattern"], known["pattern_evidence"], strict=True)
    return [f"# There {role} {place} {pattern_text(name, json.loads(text))}." for role, place, name, text in parts]


def _recorded(call: CapturedCall) -> str:
    rows = [(result.place, f"{result.role} {result.position}", result.max_abs_error) for result in call.results]
    return "[" + ", ".join(f"({index}, {name!r}, {_number(error)})" for index, name, error in rows) + "]"


def _number(value: float | None) -> str:
    return "None" if value is None else repr(value) if math.isfinite(value) else f'float("{value}")'


def _inputs(call: CapturedCall, where: Path | None) -> list[str]:
    if where is not None:
        return [f"TENSORS = torch.load({str(where)!r}, weights_only=True)"]
    if not call.tensors:
        return ["TENSORS = []"]
    return ["", EMBED, "", "TENSORS = ["] + [line for tensor in call.tensors for line in _embedded(tensor)] + ["]"]


EMBED = """
def tensor(dtype, shape, stride, text):
    data = bytearray(base64.b64decode(text))
    values = torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)
    laid_out = torch.empty_strided(shape, stride, dtype=dtype) if stride else values
    return laid_out.copy_(values) if stride else values

"""


def _embedded(tensor: CapturedTensor) -> list[str]:
    # Only what lies in memory otherwise than row by row needs to be laid out; expanded elements stay written out.
    stride = None if tensor.stride == contiguous(tensor.shape) or 0 in tensor.stride else tensor.stride
    text = base64.b64encode(tensor.data).decode("ascii")
    lines = [text[start : start + LINE] for start in range(0, len(text), LINE)] or [""]
    quoted = [f'        "{line}"' for line in lines]
    return [f"    tensor(torch.{tensor.dtype}, {tensor.shape!r}, {stride!r}, (", *quoted, "    )),"]


def _written(call: CapturedCall, folder: Path) -> Path:
    path, built = (folder / f"nbkit_op_{call.op_id}.pt").resolve(), built_from(call)
    partial = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            torch.save([built.argument(number) for number in range(len(call.tensors))], partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: what torch.save makes of a full disk
        reason = ((error.strerror if isinstance(error, OSError) else None) or str(error)).splitlines()[0].lower()
        raise NbkitError(f"Cannot write the inputs to {path}: {reason}; free space or choose another place.") from error
    return path


def _text(value: Any) -> str:
    """Returns an encoded argument as Python."""
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, float):
        return _number(value)
    if not isinstance(value, dict):
        return repr(value)
    (kind, what), *_ = value.items()
    if kind == "tensor":
        return f"TENSORS[{what}]"
    if kind == "complex":
        return f"complex({_number(what[0])}, {_number(what[1])})"
    return f"torch.device({what!r})" if kind == "device" else f"torch.{what}"
