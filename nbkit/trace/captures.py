"""Lists the calls of a folder that opcapture wrote, as a trace; their tensors are nbkit.call_of(folder, record)."""

from collections import Counter
from pathlib import Path
from typing import Any

from nbkit.errors import TraceError
from nbkit.schema import CAPTURES
from nbkit.trace.calls.layout import CALLS, Record
from nbkit.trace.calls.reading import CallFolder
from nbkit.trace.trace import Trace

TENSORS = "nbkit.call_of(folder, record) gives the tensors of a call, `nbkit.opreplay(folder)` runs the calls again."


def read_captures(path: Path) -> Trace:
    """Returns the frame `captures` of a folder; a call whose record is damaged is counted. Raises TraceError."""
    folder, skipped = CallFolder(path), Counter[str]()
    rows = []
    for number, record in folder:
        row = None if isinstance(record, TraceError) else _row(folder, number, record)
        if row is None:
            skipped[f"calls whose record in {CALLS} is damaged"] += 1
        else:
            rows.append(row)
    columns = {name: [row.get(name) for row in rows] for name in CAPTURES.names}
    meta = {name: folder.head[name] for name in ("created", "versions", "machine") if name in folder.head}
    own = {"verb": "opcapture", "name": path.name, "folder": path.name, "captured_calls": len(rows), "complete": True}
    return Trace({"captures": CAPTURES.frame(columns)}, meta | own | {"notes": [TENSORS], "skipped": dict(skipped)})


def _row(folder: CallFolder, number: int, record: Record) -> dict[str, Any] | None:
    op, call, raised, place = record.get("op"), record.get("number"), record.get("raised"), folder.place(number)
    op_id = place.pop("op_id")
    if not isinstance(op, str) or type(call) is not int or not isinstance(raised, str | None):
        return None
    texts = {name: value if isinstance(value, str) else None for name, value in place.items()}
    own = {"op_id": op_id if type(op_id) is int else -1, "op": op, "call": call, "record": number, "raised": raised}
    return texts | own
