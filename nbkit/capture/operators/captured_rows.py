"""Lists the calls that were captured, for the frame `captures`."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.frames.string_columns import text_column, texts
from nbkit.capture.raw.recording import OpPlaces
from nbkit.schema import CAPTURES
from nbkit.trace.calls.layout import PLACE_COLUMNS


class CapturedRows:
    """Holds calls in the order of the folder: row in Recording.ops, op, number of the call, what it raised."""

    def __init__(self) -> None:
        # Thousands of tuples would have Python's collector look through all that there is.
        self.slots, self.numbers = array("q"), array("q")
        self.ops: list[str] = []
        self.raised: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.ops)

    def add(self, slots: Sequence[int], ops: Sequence[str], numbers: Sequence[int], raised: str | None = None) -> None:
        """Adds calls; `raised` is what the first of them has raised."""
        if raised is not None:
            self.raised[len(self)] = raised
        self.slots.extend(slots)
        self.numbers.extend(numbers)
        self.ops.extend(ops)

    def cut(self, length: int) -> None:
        """Leaves those from a row on out."""
        del self.slots[length:], self.numbers[length:], self.ops[length:]

    def frame(self, places: OpPlaces, op_ids: np.ndarray) -> pd.DataFrame:
        """Returns the frame `captures`: `places` are those of the ops, by op_id; `op_ids` are the op_ids by what add()
        was given as slots, -1 for a call that has none.
        """
        ids = op_ids[np.array(self.slots, np.int64)]
        codes = {name: np.append(numbers, -1)[ids] for name, (numbers, _) in places.items()}
        # Autograd calls some ops that torch's observer does not report: they stand in the op that they follow.
        ops = np.array([*places["op"][1], None], object)[codes["op"]]
        columns: dict[str, Any] = {name: text_column(codes[name], places[name][1]) for name in PLACE_COLUMNS[1:]}
        columns["op_id"] = np.where(ops == np.array(self.ops, object), ids, -1)
        if self.raised:
            columns["raised"] = [*map(self.raised.get, range(len(self)))]
        own = {"op": texts(self.ops), "call": np.array(self.numbers, np.int64), "record": np.arange(len(self))}
        return CAPTURES.frame({**columns, **own})
