"""Writes captured calls as BackendBench reads them: op, and for each different call how often it ran and its arguments.

Operator: aten.mm.default
cnt: 2, ((T([64, 32], f32), T([32, 16], f32, stride=(1, 32))), {})
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nbkit.errors import TraceError
from nbkit.trace.atomic_write import writing
from nbkit.trace.calls.layout import Record
from nbkit.trace.calls.reading import CallFolder

SHORT = {
    "bfloat16": "bf16", "float64": "f64", "float32": "f32", "float16": "f16", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def export_calls(folder: CallFolder, why_not: Callable[[Record, Mapping[str, Any]], str | None], path: Path) -> None:
    """Writes the calls that are wanted, by op in the order of their first calls. Raises TraceError."""
    by_op: dict[str, Counter[str]] = {}
    for number, record in folder:
        if isinstance(record, TraceError) or why_not(record, folder.place(number)) is not None:
            continue
        try:
            args = _sequence([_text(value, record) for value in record["args"]])
            kwargs = ", ".join(f"{name!r}: {_text(value, record)}" for name, value in record.get("kwargs", {}).items())
            by_op.setdefault(str(record["op"]), Counter())[f"({args}, {{{kwargs}}})"] += 1
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            continue  # told where it is run
    with writing(Path(path), "the calls") as file:
        for op, calls in by_op.items():
            file.write(f"Operator: {op}\n")
            file.writelines(f"cnt: {count}, {call}\n" for call, count in calls.items())


def _text(value: Any, record: Record) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(item, record) for item in value)}]"
    if not isinstance(value, dict):
        return repr(value)
    ((kind, what),) = value.items()
    if kind == "tensor":
        return _tensor(record["tensors"][what])
    if kind == "complex":
        return repr(complex(*what))
    if kind == "dtype":
        return SHORT.get(what, f"torch.{what}")
    return repr(what) if kind == "device" else "None" if kind == "generator" else f"torch.{what}"


def _tensor(entry: Record) -> str:
    dtype = SHORT.get(entry["dtype"], f"torch.{entry['dtype']}")
    if "layout" in entry:
        return f"ST({entry['shape']}, {dtype}, torch.{entry['layout']}, {entry.get('is_coalesced', False)})"
    stride = f", stride={_sequence(map(str, entry['stride']))}" if "stride" in entry else ""
    return f"T({entry['shape']}, {dtype}{stride})"


def _sequence(texts: Any) -> str:
    parts = [*texts]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
