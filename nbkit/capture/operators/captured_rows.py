"""Lists the calls that were captured, for the frame `captures` and for the folder."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.frames.string_columns import text_column, texts
from nbkit.capture.raw.recording import OpPlaces
from nbkit.schema import CAPTURES
from nbkit.trace.calls.layout import encode
from nbkit.trace.calls.reading import PLACE_COLUMNS


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

    def placed(self, places: OpPlaces, op_ids: np.ndarray) -> "PlacedCalls":
        """Returns where the calls stood: `places` are those of the ops, by op_id; `op_ids` are the op_ids by what
        add() was given as slots, -1 for a call that has none.
        """
        ids = op_ids[np.array(self.slots, np.int64)]
        codes = {name: np.append(numbers, -1)[ids] for name, (numbers, _) in places.items()}
        # Autograd calls some ops that torch's observer does not report: they stand in the op that they follow.
        ops = np.array([*places["op"][1], None], object)[codes["op"]]
        op_id = np.where(ops == np.array(self.ops, object), ids, -1)
        return PlacedCalls(op_id, {name: (codes[name], places[name][1]) for name in PLACE_COLUMNS[1:]})

    def frame(self, placed: "PlacedCalls") -> pd.DataFrame:
        """Returns the frame `captures`."""
        columns: dict[str, Any] = {name: text_column(*column) for name, column in placed.columns.items()}
        if self.raised:
            columns["raised"] = [*map(self.raised.get, range(len(self)))]
        own = {"op": texts(self.ops), "call": np.array(self.numbers, np.int64), "record": np.arange(len(self))}
        return CAPTURES.frame({"op_id": placed.op_id, **columns, **own})


@dataclass(frozen=True)
class PlacedCalls:
    """Holds where calls stood in the step: their op_ids, -1 for what is not known, and columns as numbers and texts."""

    op_id: np.ndarray
    columns: Mapping[str, tuple[np.ndarray, Sequence[str | None]]]

    def text(self) -> str:
        """Returns them as JSON for the folder; texts that are not known are null."""
        listed = [f'"op_id":{encode(self.op_id.tolist())}']
        for name, (codes, values) in self.columns.items():
            quoted = [*map(encode, values), "null"]
            listed.append(f"{encode(name)}:[{','.join(map(quoted.__getitem__, codes.tolist()))}]")
        return f"{{{','.join(listed)}}}"
