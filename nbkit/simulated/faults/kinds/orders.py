"""Adds up in another order: from run to run, by the size of the batch, in its last rows, by the number of threads.

Each result is right within rounding; what is wrong is that the same inputs do not always give the same bits.
"""

from random import Random
from typing import Any

import torch

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.accumulation import PARTS, Accumulator, accumulated_result
from nbkit.simulated.faults.kinds.kind import Kind

ALL_BITS = 52  # those of float64: nothing is rounded away but what the dtype itself rounds
SEED = 3


def unordered_sum(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the op's sum with its blocks of terms added in an order that is drawn anew each time."""
    return _in_parts(call, PARTS, memory.setdefault("lot", Random(SEED)))


def split_sum(call: Call, size: float, memory: dict[Any, Any]) -> Results | None:
    """Returns the op's sum in as many parts as rows fit into `size`; None where that is one."""
    parts = int(size) // max(_rows(call), 1)
    return _in_parts(call, parts) if parts > 1 else None


def tail_rows(call: Call, size: float, memory: dict[Any, Any]) -> Results | None:
    """Returns the op's sum, in two parts for the rows beyond the last whole tile; None where there are none."""
    rows = _rows(call)
    whole = rows - rows % int(size)
    if whole == rows:
        return None
    (wrong,) = _in_parts(call, 2)
    wrong[:whole] = call.results[0][:whole]
    return [wrong]


def thread_sum(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the op's sum in as many parts as torch has threads; None where that is one."""
    threads = torch.get_num_threads()
    return _in_parts(call, threads) if threads > 1 else None


def _in_parts(call: Call, parts: int, lot: Random | None = None) -> Results:
    return accumulated_result(call, Accumulator(ALL_BITS, parts=parts, lot=lot))


def _rows(call: Call) -> int:
    if not call.results or not call.results[0].dim():
        raise NotApplicableError(f"{call.func} gives no rows")
    return call.results[0].shape[0]


KINDS = (
    Kind(
        "unordered_sum",
        unordered_sum,
        "a sum or product is added up in another order each time, as by atomic additions",
    ),
    Kind(
        "split_sum",
        split_sum,
        "a sum or product is cut into more parts the fewer rows there are, as by split-K",
        "the rows from which on it is whole",
        16,
        smallest=1,
        needs="so few rows",
    ),
    Kind(
        "tail_rows",
        tail_rows,
        "rows beyond the last whole tile are added up in another order",
        "the rows of a tile",
        4,
        smallest=2,
        needs="rows beyond the last whole tile",
    ),
    Kind(
        "thread_sum",
        thread_sum,
        "a sum or product is cut into as many parts as torch has threads",
        needs="more than one thread",
    ),
)
