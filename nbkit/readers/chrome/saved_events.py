"""Reads events of a Chrome trace that nbkit wrote: the frames as they were."""

from pathlib import Path
from typing import Any

from nbkit.errors import NbkitError, TraceError, check_version
from nbkit.schema import MEMORY, OPS, SCHEMA_VERSION, TABLES, Table
from nbkit.trace.trace import Trace

Event = dict[str, Any]


class SavedEvents:
    """Collects rows of `ops` and `memory` by column; every other event only draws what they say."""

    def __init__(self, path: Path, head: Any) -> None:
        version = head.get("schema_version") if isinstance(head, dict) else None
        if not isinstance(version, int):
            raise _damaged(path, "its nbkit part has no schema version")
        check_version(path, version, SCHEMA_VERSION)
        self.path = path
        self.head: dict[str, Any] = head
        self._ops: dict[str, list[Any]] = {name: [] for name in OPS.names}
        self._memory: dict[str, list[Any]] = {name: [] for name in MEMORY.names}
        self._texts: dict[str, str] = {}  # each text once

    def add(self, event: Any) -> None:
        """Takes the next event of the file. Raises TraceError if it is not as nbkit writes it."""
        try:
            phase = event["ph"]
            if phase == "X":
                own = {"op": event["name"], "start_us": event["ts"], "total_time_us": event["dur"]}
                self._append(self._ops, {**event["args"], **own})
            elif phase == "i":
                self._append(self._memory, {**event["args"], "time_us": event["ts"]})
        except (KeyError, TypeError) as error:
            raise _damaged(self.path, f"an event is not as nbkit writes it ({error})") from error

    def trace(self) -> Trace:
        """Returns the trace that was written. Raises TraceError if the events do not make its frames."""
        try:
            frames = {"ops": OPS.frame(self._ops)}
            if self.head["memory"]:
                frames["memory"] = MEMORY.frame(self._memory)
            for name, columns in self.head["frames"].items():
                frames[name] = _table(name).frame(columns)
            return Trace(frames, self.head["meta"])
        except (NbkitError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(self.path, str(error)) from error

    def _append(self, columns: dict[str, list[Any]], row: Event) -> None:
        known = self._texts
        for name, column in columns.items():
            value = row.get(name)
            column.append(known.setdefault(value, value) if type(value) is str else value)


def _table(name: str) -> Table:
    if name not in TABLES:
        raise TraceError(f"the frame {name!r} is not known; upgrade nbkit-torch")
    return TABLES[name]


def _damaged(path: Path, reason: str) -> TraceError:
    return TraceError(f"{path} is damaged: {reason}; export or copy it again.")
