"""Reads a folder of captured calls; nothing in it is run, and no path in it is followed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from safetensors import SafetensorError, safe_open

from nbkit.errors import TraceError, check_version
from nbkit.numerics.precision import Array
from nbkit.trace.calls.layout import (
    CALLS,
    CONTENT,
    FORMAT,
    HEAD,
    IN_TRACE,
    PLACE_COLUMNS,
    PLACES,
    REFERENCE,
    SHARD,
    VERSION,
    Record,
    record_of,
)


class CallFolder:
    """Holds an open folder, or that of a saved trace; `head` says what was set then. Raises TraceError if it is none.

    `parameter` returns the bytes of a parameter that the folder refers to by its name; None if there is none.
    """

    def __init__(self, path: Path, parameter: Callable[[str], Array | None] = lambda name: None) -> None:
        if not (path / HEAD).is_file() and (path / IN_TRACE / HEAD).is_file():
            path = path / IN_TRACE
        self.path, self.parameter = path, parameter
        self.head = _head(path)
        self._contents: dict[str, tuple[Any, str]] = {}  # the file of a content and its CRC-32, by its number
        self.damaged_shards: list[str] = []
        for file in sorted(_files(path)):
            self._open(file)
        self._places = _places(path)

    def __iter__(self) -> Iterator[tuple[int, Record | TraceError]]:
        """Yields the calls with their numbers; the error that says why a line is none."""
        try:
            with (self.path / CALLS).open("rb") as file:
                for number, line in enumerate(file):
                    yield number, self._record(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TraceError(f"Cannot read {self.path / CALLS}: {(error.strerror or str(error)).lower()}.") from error

    def __len__(self) -> int:
        """Returns the number of calls."""
        return sum(1 for _ in self)

    def content(self, name: object) -> Array:
        """Returns the bytes of a content. Raises TraceError if they are not there or not what they were."""
        if isinstance(name, str) and (reference := REFERENCE.fullmatch(name)):
            return self._parameter(*reference.groups())
        shard, checksum = self._contents.get(name, (None, "")) if isinstance(name, str) else (None, "")
        if shard is None:
            missing = f"; {', '.join(self.damaged_shards)} cannot be read" if self.damaged_shards else ""
            raise TraceError(f"its values {str(name)[:40]!r} are not in the folder{missing}")
        try:
            data: Array = shard.get_tensor(f"{name}-{checksum}")
            is_bytes = data.dtype == np.uint8 and data.ndim == 1
        except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise TraceError(f"its values {name!r} cannot be read; capture it again") from error
        if not is_bytes or crc32(data.data) != int(checksum, 16):
            raise TraceError(f"its values {name!r} are damaged; capture it again")
        return data

    def _parameter(self, checksum: str, name: str) -> Array:
        data = self.parameter(name)
        if data is None:
            raise TraceError(f"its parameter {name[:80]!r} is not in the folder; give parameters=model")
        if crc32(data.data) != int(checksum, 16):
            raise TraceError(f"its parameter {name[:80]!r} is not what it was; give the model as it was then")
        return data

    def place(self, number: int) -> dict[str, Any]:
        """Returns where a call stood in its step, by the columns of `ops`; what is not known is null."""
        return {
            name: values[number] if number < len(values := self._places.get(name, [])) else None
            for name in PLACE_COLUMNS
        }

    def _record(self, line: bytes) -> Record | TraceError:
        try:
            return record_of(line)
        except TraceError as error:
            return error

    def _open(self, file: Path) -> None:
        try:
            shard: Any = safe_open(file, framework="numpy")
            names = shard.keys()
            for match in filter(None, map(CONTENT.fullmatch, names)):
                self._contents[match[1]] = shard, match[2]
        except (SafetensorError, OSError, ValueError):
            self.damaged_shards.append(file.name)


def _files(path: Path) -> list[Path]:
    # A link may lead out of the folder.
    return [file for file in path.iterdir() if SHARD.fullmatch(file.name) and file.is_file() and not file.is_symlink()]


def _head(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise TraceError(f"There is no {path}; give the folder that nbkit.opcapture wrote.")
    if not (path / HEAD).is_file():
        raise TraceError(
            f"{path} holds no captured calls: it has no {HEAD}; give the folder that opcapture wrote, or a trace of "
            "opdiff that was saved with values='captured'."
        )
    try:
        head = json.loads((path / HEAD).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise TraceError(f"{path} is damaged: {HEAD} is no JSON; capture the step again.") from error
    if not isinstance(head, dict) or head.get("format") != FORMAT or not isinstance(head.get("version"), int):
        raise TraceError(f"{path} holds no captured calls: {HEAD} is of another format; give the folder of opcapture.")
    check_version(path, head["version"], VERSION)
    return head


def _places(path: Path) -> dict[str, list[Any]]:
    """Returns where the calls stood; nothing after a crash, or where the file is damaged."""
    try:
        places = json.loads((path / PLACES).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(places, dict):
        return {}
    return {name: values for name, values in places.items() if isinstance(values, list)}
