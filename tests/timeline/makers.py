"""Makes small timelines by hand."""

from typing import Any

import numpy as np

from nbkit.timeline import HOST, KERNEL, MEMORY, MODULE, RUNTIME, Events

__all__ = ["HOST", "KERNEL", "MEMORY", "MODULE", "RUNTIME", "events"]


def events(*rows: dict[str, Any], **more: Any) -> Events:
    """Makes events from rows of `name`, `start`, `end` (ns) and any other column; others are not known."""
    columns: dict[str, Any] = {}
    for name in {key for row in rows for key in row} - {"name", "start", "end", "kind", "thread"}:
        values = [row.get(name) for row in rows]
        texts = any(isinstance(value, str) for value in values)
        missing = 0 if name in ("own_id", "external_id", "correlation") else -1
        columns[name] = values if texts else np.array([missing if value is None else value for value in values])
    return Events(
        name=[row["name"] for row in rows],
        kind=np.array([row.get("kind", HOST) for row in rows], dtype=np.int8),
        start_ns=np.array([row["start"] for row in rows]),
        duration_ns=np.array([row["end"] - row["start"] for row in rows]),
        thread=np.array([row.get("thread", 1) for row in rows]),
        **columns,
        **more,
    )
