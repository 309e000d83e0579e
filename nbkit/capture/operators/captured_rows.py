"""Lists the calls that were captured, for the frame `captures` and for the folder."""

from array import array
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from nbkit.capture.frames.string_columns import texts
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

    def frame(self, ops: pd.DataFrame, op_ids: np.ndarray) -> pd.DataFrame:
        """Returns the frame; `op_ids` are rows of `ops` by slot, -1 for a call that has none."""
        ids = op_ids[np.array(self.slots, np.int64)]
        columns = {name: ops[name].array.take(ids, allow_fill=True) for name in ("op", *PLACE_COLUMNS[1:])}
        own = texts(self.ops)
        raised = {"raised": [*map(self.raised.get, range(len(self)))]} if self.raised else {}
        # Autograd calls some ops that torch's observer does not report: they stand in the op that they follow.
        is_own = np.asarray(columns["op"] == own, bool)
        return CAPTURES.frame(
            {
                **columns,
                "op_id": np.where(is_own, ids, -1),
                "op": own,
                "call": np.array(self.numbers, np.int64),
                "record": np.arange(len(self)),
                **raised,
            }
        )


def places(frame: pd.DataFrame) -> str:
    """Returns where the calls of the frame stood in the step, for the folder, as JSON; null for what is not known."""
    return f"{{{','.join(f'{encode(name)}:[{_listed(frame[name])}]' for name in PLACE_COLUMNS)}}}"


def _listed(column: pd.Series) -> str:
    """Returns the values in JSON, of which each text is encoded once."""
    if column.dtype == np.int64:
        return ",".join(map(str, column.tolist()))
    values = pa.array(column.array, from_pandas=True)
    coded = (values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values).dictionary_encode("encode")
    texts = [*map(encode, coded.dictionary.to_pylist())]
    return ",".join(map(texts.__getitem__, coded.indices.to_numpy().tolist()))
