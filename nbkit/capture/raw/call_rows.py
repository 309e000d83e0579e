"""Tells which row of Recording.ops each call has that a mode below the recorder is shown before the row is written."""

from array import array
from typing import Any

import numpy as np

from nbkit.capture.raw.recording import Recording


class CallRows:
    """Numbers calls in the order in which they begin, and finds their rows among those that the recorder wrote.

    torch's observer tells of a call when it ends, and a row is written then. Autograd runs calls within a call: having
    run an op that writes to a view, it may make that view again. Such calls end first, and have their rows before it.
    """

    def __init__(self, recording: Recording) -> None:
        self.ops = recording.ops
        self.first = array("q")  # the first row that each call may have
        self.funcs: list[Any] = []  # the ops; None of a part of the op whose row comes next

    def begin(self, func: Any) -> int:
        """Returns the number of a call that begins; `func` is None for a part of the op whose row comes next."""
        self.first.append(self.ops.row_count)
        self.funcs.append(func)
        return len(self.first) - 1

    def op_ids(self, op_ids: np.ndarray) -> np.ndarray:
        """Returns the op_id of each call, by its number, from those of the rows; -1 of a call that has no row."""
        found: np.ndarray = np.append(op_ids, -1)[np.minimum(self._rows(), len(op_ids))]
        return found

    def _rows(self) -> np.ndarray:
        """The row of each call. A row is that of the last call of its op to begin before it that has none yet.

        A call that no row is found for is a part of another op, such as a recurrent layer, whose row comes next.
        """
        numbers, names = self.ops.objects("name")
        begun: dict[int, list[int]] = {id(name): [] for name in names}  # calls without a row, by op
        by_number = [begun[id(name)] for name in names]
        rows = np.array(self.first, dtype=np.int64)
        call = 0
        for row, op in enumerate(numbers.tolist()):
            while call < len(rows) and self.first[call] <= row:
                if (calls := begun.get(id(self.funcs[call]))) is not None:
                    calls.append(call)
                call += 1
            if by_number[op]:
                rows[by_number[op].pop()] = row
        return rows
