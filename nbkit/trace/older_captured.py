"""Reads the captured calls of traces that nbkit saved before they were records of opcapture's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nbkit.numerics.precision import Array
from nbkit.trace.captured_values import CapturedCall, CapturedResult, CapturedTensor

INDEX, VALUES = "kept.json", "kept.bin"


def read_older_captured(folder: Path) -> dict[int, CapturedCall]:
    """Returns the calls in a folder, by op_id; none if it has none. Raises OSError, ValueError, KeyError, TypeError."""
    if not (folder / INDEX).is_file():
        return {}
    parts = _Parts((folder / VALUES).read_bytes())
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    calls = [_call(outline, parts) for outline in index]
    return {call.op_id: call for call in calls}


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
