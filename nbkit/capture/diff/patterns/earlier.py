"""Results that are those of an earlier call of the op, or are added to them: told from metrics, no tensor is kept.

Sums of squares stand for the tensors: numbers of so many bits do not come out alike by chance, unless few of them were
summed, or such as masks hold.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from math import frexp, isfinite
from typing import Any

from nbkit.capture.diff.pair import Row
from nbkit.numerics.difference_patterns import pattern_text
from nbkit.numerics.metrics import Metrics
from nbkit.numerics.precision import PRECISIONS
from nbkit.schema.message import joined

FEWEST = 8
# Bits that a sum of squares must have to stand for a tensor, and how near two of one must be.
BITS, SAME, NEARLY = 24, 1e-12, 1e-6
SQUARE, WANTED, ERROR = (
    Metrics._fields.index(name) for name in ("actual_square", "expected_square", "sum_squared_error")
)
# So many calls of one kind are looked back at.
MOST_EARLIER = 256


def name_earlier(rows: list[Row], op_id_of: Callable[[int], int]) -> None:
    """Name the pattern of mismatches that have none yet; `op_id_of` answers for a slot, -1 for an op left out."""
    if not any(row["status"] == "mismatch" for row in rows):
        return
    known: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["slot"])):
        if "metrics" not in row or row["dtype"] not in PRECISIONS:
            continue
        alike = known[tuple(row.get(name) for name in ("op", "role", "position", "dtype", "shape"))]
        if row["status"] == "mismatch" and row.get("pattern") is None:
            found = next(_found(row, alike[-MOST_EARLIER:][::-1]), None)
            if found is not None:
                pattern, earlier = found
                op_id = op_id_of(earlier["slot"])
                name_pattern(row, pattern, {"earlier_op_id": op_id if op_id >= 0 else None})
        alike.append(row)


def name_pattern(row: Row, pattern: str, evidence: dict[str, Any]) -> None:
    """Fill the columns of a pattern, and say it at the beginning of the message."""
    row["pattern"], row["pattern_evidence"] = pattern, json.dumps(evidence)
    row["message"] = joined("; ", filter(None, [f"the result {pattern_text(pattern, evidence)}", row.get("message")]))


def _found(row: Row, earlier: list[Row]) -> Iterator[tuple[str, Row]]:
    numbers = row["metrics"]
    square, wanted, error = numbers[SQUARE], numbers[WANTED], numbers[ERROR]
    if numbers[0] < FEWEST or not isfinite(square + wanted + error):
        return
    is_fine = PRECISIONS[row["dtype"]].digits >= PRECISIONS["float32"].digits
    for other in earlier:
        its = other["metrics"]
        if _is_near(its[WANTED], wanted, NEARLY) or _bits(its[SQUARE]) < BITS:
            continue  # both calls should give the same, or what it gave is of a few bits
        if _is_near(its[SQUARE], square, SAME):
            yield "stale", other
        elif is_fine and _is_near(its[SQUARE], error, NEARLY):
            yield "accumulated", other


def _is_near(left: float, right: float, share: float) -> bool:
    return abs(left - right) <= share * max(abs(left), abs(right))


def _bits(value: float) -> int:
    """Bits of the mantissa up to the last that is not 0; 0 for what is no number."""
    if not isfinite(value) or not value:
        return 0
    whole = int(frexp(value)[0] * 2**53)
    return 53 - ((whole & -whole).bit_length() - 1)
