"""Packs columns and JSON data as one compressed block: whole numbers in byte planes, floats by their digits.

widgets/src/shared/unpack.js reads it. Nothing in it can be taken for markup or code, whatever names the trace holds.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from nbkit.analysis.query.encoded import TextColumn

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
HEADER_BYTES = 4
FLOAT_BYTES = 8
# Whole numbers that floats, and so JavaScript, can tell apart once they are folded.
EXACT = 2.0**51
# Of floats by their digits: what their digits count from, what stands for NaN and Inf, and how far their powers are up.
KNOWN = 3
NAN, INFINITE, MINUS_INFINITE = range(KNOWN)
DIGITS = 1 << 16


@dataclass(frozen=True)
class Column:
    """A column to pack: unsigned whole numbers, how many bytes of each, and the way back that the page goes.

    `scale` divides the numbers of the page.
    """

    way: str
    values: npt.NDArray[np.uint64]
    width: int
    scale: int = 1


def pack(data: Mapping[str, Any]) -> bytes:
    """Deflates JSON data with columns (`Column`) anywhere in it; equal input gives equal bytes.

    Inside: the length of the header, the header (JSON, in place of each column how it is packed), and the columns one
    after the other, of each the lowest bytes of all values, then the next ones.
    """
    planes: list[bytes] = []
    text = json.dumps(_outline(data, planes), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return zlib.compress(len(text).to_bytes(HEADER_BYTES, "little") + text + b"".join(planes), 9)


def texts(column: TextColumn) -> dict[str, Any]:
    """Packs texts: each different one once, and a code per row."""
    return {"values": column.values.tolist(), "codes": codes(column.codes)}


def codes(values: npt.NDArray[np.integer]) -> Column:
    """Packs whole numbers from -1 on."""
    return _whole("codes", values.astype(np.int64) + 1)


def numbers(values: Floats, scale: int = 1) -> Column:
    """Packs numbers, NaN for missing: as whole numbers if `scale` times them are whole, else with all their bytes."""
    is_known = ~np.isnan(values)
    # What is a whole number of 1/scale may be a little off it as a float.
    known = np.rint(values[is_known] * scale) if scale > 1 else values[is_known]
    if (np.abs(known) > EXACT).any() or (known != np.rint(known)).any():
        return _floats(values)
    whole = np.zeros(len(values), np.int64)
    whole[is_known] = folded(np.rint(known).astype(np.int64)) + 1
    return _whole("numbers", whole, scale)


def scaled(values: Ints, scale: int) -> Column:
    """Packs numbers as whole ones that the page divides by `scale`."""
    return _whole("numbers", folded(values) + 1, scale)


def steps(values: npt.NDArray[np.integer | np.floating], scale: int = 1) -> Column:
    """Packs numbers that change little from row to row, rounded to 1/`scale`; as `numbers` if any is NaN or large."""
    whole = np.rint(values * float(scale))
    if not (np.abs(whole) <= EXACT).all():
        return numbers(values.astype(np.float64), scale)
    return _whole("steps", folded(np.diff(whole.astype(np.int64), prepend=0)), scale)


def rows_up(values: Floats) -> Column:
    """Packs row numbers, NaN for missing, by how far above the row they are: the same in each repeat of a step."""
    is_known = ~np.isnan(values)
    up = np.zeros(len(values), np.int64)
    up[is_known] = folded(np.flatnonzero(is_known) - values[is_known].astype(np.int64)) + 1
    return _whole("rows_up", up)


def decimals(values: Floats, digits: int) -> Column:
    """Packs floats of up to four decimal digits: the digits as a whole number, above it the power of ten."""
    different, rows = np.unique(values, return_inverse=True)
    return _whole("decimals", np.array([_decimal(value, digits) for value in different.tolist()], np.int64)[rows])


def _decimal(value: float, digits: int) -> int:
    if not isfinite(value):
        return NAN if isnan(value) else INFINITE if value > 0 else MINUS_INFINITE
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    whole = np.array([int(mantissa.replace(".", "")), int(power) - digits + 1])
    number, exponent = folded(whole).tolist()
    return int(exponent * DIGITS + number + KNOWN)


def folded(values: Ints) -> Ints:
    """Maps signed numbers to unsigned ones: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return (values << 1) ^ (values >> 63)


def _floats(values: Floats) -> Column:
    bits = np.ascontiguousarray(values, "<f8").view("<u8")
    # Of a NaN only that it is one is kept: its other bits differ from machine to machine.
    return Column("floats", np.where(np.isnan(values), np.uint64(0x7FF8 << 48), bits), FLOAT_BYTES)


def _whole(way: str, values: Ints, scale: int = 1) -> Column:
    width = max((int(values.max(initial=0)).bit_length() + 7) // 8, 1)
    return Column(way, values.astype(np.uint64), width, scale)


def _outline(data: Any, planes: list[bytes]) -> Any:
    """Replaces each column in the data by how it is packed, and appends its bytes to `planes`."""
    if isinstance(data, Mapping):
        return {name: _outline(value, planes) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_outline(value, planes) for value in data]
    if not isinstance(data, Column):
        # JSON has no NaN and no Inf.
        return None if isinstance(data, float) and not isfinite(data) else data
    rows = data.values.astype("<u8").view(np.uint8).reshape(-1, FLOAT_BYTES)[:, : data.width]
    planes.append(np.ascontiguousarray(rows.T).tobytes())
    return {"way": data.way, "count": len(rows), "width": data.width, "scale": data.scale}
