"""Holds captured calls: the values of single calls of ops, as plain bytes and numbers that a trace can save."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nbkit.numerics.precision import Array

INDEX, VALUES = "kept.json", "kept.bin"


@dataclass(frozen=True)
class CapturedTensor:
    """Holds an input of a call, from before it ran; `data` are its values in their own dtype, one after the other."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    data: bytes


@dataclass(frozen=True)
class CapturedResult:
    """Holds a tensor that a call returned or wrote to, and its reference: flat float64, complex128 or int64.

    `place` counts what the call returned and then what it wrote to without returning it; role and position are those
    of `diffs`. The shapes differ where the call gave a tensor of another shape than the reference.
    """

    place: int
    role: str
    position: int
    dtype: str
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    max_abs_error: float | None
    actual: Array
    expected: Array


@dataclass(frozen=True)
class CapturedCall:
    """Holds one call: the op's name, its arguments as JSON data, its tensors, and the results that were kept.

    In arguments {"tensor": 0} stands for a tensor by its place, and other objects of torch are named likewise.
    `setup` are lines of Python that make its device in a fresh process; `note` says what is not quite as it was.
    """

    op_id: int
    op: str
    device: str
    args: Any
    kwargs: Mapping[str, Any]
    tensors: tuple[CapturedTensor, ...]
    results: tuple[CapturedResult, ...]
    setup: tuple[str, ...] = ()
    note: str | None = None

    @property
    def size_bytes(self) -> int:
        """Returns the memory that it takes."""
        inputs = sum(len(tensor.data) for tensor in self.tensors)
        return inputs + sum(result.actual.nbytes + result.expected.nbytes for result in self.results)

    def result(self, role: str, position: int) -> CapturedResult | None:
        """Returns the result with this role and position in `diffs`; None if it was not kept."""
        return next((result for result in self.results if (result.role, result.position) == (role, position)), None)


def write_captured(folder: Path, calls: Mapping[int, CapturedCall]) -> None:
    """Writes the calls into an existing folder: an index in JSON and one file of bytes. Nothing in it is ever run."""
    parts = list[bytes]()
    index = [_outline(call, parts) for call in calls.values()]
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")
    with (folder / VALUES).open("wb") as file:
        file.writelines(parts)


def read_captured(folder: Path) -> dict[int, CapturedCall]:
    """Returns the calls in a folder, by op_id; none if it has none. Raises OSError, ValueError, KeyError, TypeError."""
    if not (folder / INDEX).is_file():
        return {}
    parts = _Parts((folder / VALUES).read_bytes())
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    calls = [_call(outline, parts) for outline in index]
    return {call.op_id: call for call in calls}


def _outline(call: CapturedCall, parts: list[bytes]) -> dict[str, Any]:
    tensors = [{**asdict(part), "data": _put(part.data, parts)} for part in call.tensors]
    results = [
        {**vars(part), "actual": _put_array(part.actual, parts), "expected": _put_array(part.expected, parts)}
        for part in call.results
    ]
    return {**vars(call), "kwargs": dict(call.kwargs), "tensors": tensors, "results": results}


def _put(data: bytes, parts: list[bytes]) -> int:
    parts.append(data)
    return len(data)


def _put_array(values: Array, parts: list[bytes]) -> list[Any]:
    return [values.dtype.str, _put(values.tobytes(), parts)]


class _Parts:
    """Takes the parts of a file of bytes one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        if len(part) != size:
            raise ValueError(f"{VALUES} ends after {len(self.data)} bytes, in the middle of a tensor")
        self.at += size
        return part

    def array(self, dtype: str, size: int) -> Array:
        return np.frombuffer(self.take(size), dtype)


def _call(outline: dict[str, Any], parts: _Parts) -> CapturedCall:
    tensors = tuple(CapturedTensor(**_sizes(tensor, parts.take(tensor["data"]))) for tensor in outline["tensors"])
    results = tuple(_results(outline["results"], parts))
    return CapturedCall(**{**outline, "tensors": tensors, "results": results, "setup": tuple(outline["setup"])})


def _sizes(outline: dict[str, Any], data: bytes) -> dict[str, Any]:
    return {**outline, "shape": tuple(outline["shape"]), "stride": tuple(outline["stride"]), "data": data}


def _results(outlines: list[dict[str, Any]], parts: _Parts) -> Iterator[CapturedResult]:
    for outline in outlines:
        actual, expected = (parts.array(*outline[side]) for side in ("actual", "expected"))
        shapes = {name: tuple(outline[name]) for name in ("shape", "expected_shape")}
        yield CapturedResult(**{**outline, **shapes, "actual": actual, "expected": expected})
