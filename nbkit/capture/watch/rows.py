"""Holds the rows of the frame `steps` of a run of any length: in a folder as they come, or 0.1 kB of memory a step."""

from collections.abc import Iterable
from time import perf_counter

import pandas as pd

from nbkit import units
from nbkit.capture.watch.watch import Row, StepWatch
from nbkit.errors import TraceError
from nbkit.schema import STEPS
from nbkit.schema.table import Table
from nbkit.trace.live import LiveTrace

# Rows of one part of the file, and after how long it is written with fewer: those of the last part are lost where the
# process is killed.
BLOCK, EVERY_S = 2048, 30.0
# The first steps are run again.
FIRST = 8
UNREAD = "The norm of the gradients and the memory were read in {read:,} of {steps:,} steps, to cost little."


class Blocks:
    """Collects the rows of a frame: whole blocks go to a live trace if there is one, else they are small frames."""

    def __init__(self, table: Table, live: LiveTrace | None, block: int = BLOCK) -> None:
        self.table, self.live, self.block = table, live, block
        self.open: list[Row] = []
        self.closed: list[pd.DataFrame] = []
        self.count, self.flushed = 0, perf_counter()
        self.problem: str | None = None  # why no more goes to the live trace

    def append(self, row: Row) -> None:
        self.open.append(row)
        self.count += 1
        is_late = self.live is not None and perf_counter() - self.flushed >= EVERY_S
        if is_late or len(self.open) >= self.block:
            self.flush()

    def flush(self) -> None:
        """Closes the block that is open."""
        if not self.open:
            return
        frame = self.table.frame(self.open)
        self.open, self.flushed = [], perf_counter()
        if self.live is not None and self.problem is None:
            try:
                self.live.write(self.table.name, frame)
                return
            except TraceError as problem:  # a full disk, say: what comes from now on stays in memory
                self.problem = str(problem)
        self.closed.append(frame)

    def frame(self) -> pd.DataFrame:
        """Returns all rows."""
        self.flush()
        frames = [*self._written(), *self.closed]
        return pd.concat(frames, ignore_index=True) if frames else self.table.frame()

    def _written(self) -> list[pd.DataFrame]:
        """Returns what went to the live trace; nothing, and `problem` says so, where somebody has removed it."""
        if self.live is None or not self.live.parts[self.table.name]:
            return []
        try:
            return [self.live.frame(self.table.name)]
        except TraceError as problem:
            lost = self.count - sum(map(len, self.closed))
            self.problem = f"{units.counted(lost, 'row')} of {self.table.name} are lost: {problem}"
            return []


class StepRows:
    """Rows of the frame `steps`, of which those that stand out, the first and the last are at hand by number."""

    def __init__(self, rows: Iterable[Row] = (), live: LiveTrace | None = None) -> None:
        self.blocks = Blocks(STEPS, live)
        self.at_hand: dict[int, Row] = {}
        self.anomalous: list[int] = []
        self.has_steps = False
        self.last: Row = {}
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        number = len(self)
        if row["anomaly"] is not None:
            self.anomalous.append(number)
        if number < FIRST or row["anomaly"] is not None or row["error"] is not None:
            self.at_hand[number] = row
        self.has_steps = self.has_steps or bool(row.get("optimizer_steps"))
        self.before_last, self.last = self.last, row
        self.blocks.append(row)

    def keep_before_last(self) -> None:
        """Keeps the row of the step before the last one at hand."""
        self.at_hand[len(self) - 2] = self.before_last

    def __len__(self) -> int:
        return self.blocks.count

    def __getitem__(self, number: int) -> Row:
        """Returns the row of a step that is at hand; of the others those of the block that is open."""
        if number == len(self) - 1:
            return self.last
        return self.at_hand.get(number) or self.blocks.open[number - len(self)]


def limits_of(watch: StepWatch, rows: StepRows, metrics: Blocks) -> list[str]:
    """Returns what is said of a watched run that is not whole: frames that no disk took, steps that were not read."""
    rows.blocks.flush()
    problems = [blocks.problem for blocks in (rows.blocks, metrics) if blocks.problem is not None]
    read = UNREAD.format(read=len(rows) - watch.unread_steps, steps=len(rows))
    return [*dict.fromkeys(problems), *([read] if watch.unread_steps else [])]
