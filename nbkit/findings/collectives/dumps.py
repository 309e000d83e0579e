"""Matches the calls of all ranks by process group and number, and says where the ranks of a group part."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.ops.collectives import ALIKE, INPUTS

Ints = npt.NDArray[np.int64]
NS_PER_US = 1e3
TEXTS = ("op", "input_shapes", "output_shapes", "input_dtypes", "output_dtypes")
# A number beyond this is no rank, such as a date in the name of a file.
MOST_RANKS = 200_000
# Of the calls of a rank that are compared with those of another one.
LONGEST = 100_000


@dataclass(frozen=True)
class Content:
    """Holds what the ranks of a group must give alike: op, numbers of elements and dtypes; and the shapes, for words.

    Calls that torch coalesces have one number, and are one content.
    """

    op: str
    numels: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    shown: str = field(compare=False)


def content_of(op: Any, in_shapes: Any, out_shapes: Any, in_dtypes: Any, out_dtypes: Any) -> Content:
    """Returns the content of a call, from its cells."""
    alike = ALIKE.get(op, ())
    shapes: list[list[int]] = []
    dtypes: list[Any] = []
    numels: list[Any] = []
    for side, of_shapes, of_dtypes in (("inputs", in_shapes, in_dtypes), ("outputs", out_shapes, out_dtypes)):
        known = json.loads(of_shapes) if isinstance(of_shapes, str) else []
        if side == INPUTS or not shapes:
            shapes = known
        if side in alike and isinstance(of_shapes, str):
            numels.append((side, *map(prod, known)))
            dtypes.append((side, of_dtypes))
    first = json.loads(in_dtypes if in_dtypes not in (None, "[]") else out_dtypes or "[]") or [""]
    shown = f"{op} of {first[0]} {', '.join(map(str, shapes))}".replace("  ", " ") if shapes else op
    return Content(op, tuple(numels), tuple(dtypes), shown)


@dataclass(frozen=True, eq=False)
class Group:
    """Holds the calls of one process group: of each rank the rows of the frame by number, in order.

    `members` are all its ranks, null if they are not known. The last calls of a rank are unknown where it has none
    here and its ring has dropped some.
    """

    name: str
    members: Sequence[int] | None
    calls: Mapping[int, Mapping[int, int]]

    @cached_property
    def last(self) -> dict[int, int]:
        """Returns the number of the last call of each rank that is known to be in the group; 0 for none."""
        return {rank: max(rows, default=0) for rank, rows in self.calls.items()}


class Dumps:
    """Knows the calls of a job: of each rank and group, matched by number, with what each holds.

    `ranks` are those with a dump, `absent` those without that must have been there. `notes` say what is not compared.
    """

    def __init__(self, frame: pd.DataFrame, meta: Mapping[str, Any]) -> None:
        self.about: dict[int, dict[str, Any]] = {
            one["rank"]: one for one in meta.get("ranks", []) if one["rank"] is not None
        }
        self.ranks = sorted(self.about)
        world = max([int(meta.get("world_size") or 0), *(rank + 1 for rank in self.ranks)])
        self.absent = sorted({*range(world)} - {*self.ranks}) if world <= MOST_RANKS else []
        self.notes: list[str] = []
        self.partings: dict[str, Any] = {}  # what rules found of each group
        self.started_ns = int(meta.get("started_ns") or 0)
        self.start_us, self.seq = (frame[name].to_numpy(np.float64, na_value=np.nan) for name in ("start_us", "seq"))
        self._line, self._lines = pd.factorize(frame["source"])
        self._state, self._states = pd.factorize(frame["state"])
        self.rank = frame["rank"].to_numpy(np.int64, na_value=-1)
        self.contents, self.content = _contents(frame)
        self._members: dict[str, list[int]] = dict(meta.get("groups", {}))
        self.group, names = pd.factorize(frame["group"])
        self.names = [str(name) for name in names]
        self.is_p2p = frame["is_p2p"].to_numpy(bool)
        self.unfinished = {(one["rank"], group, seq) for one in self.about.values() for group, seq in one["unfinished"]}
        self._order = self._usable()

    def _usable(self) -> Ints:
        """Returns the rows of collectives by group, rank and order of calls, without what came before a new start."""
        rows = np.flatnonzero(~self.is_p2p & (self.rank >= 0) & (self.seq > 0) & (self.group >= 0))
        rows = rows[np.lexsort((rows, self.rank[rows], self.group[rows]))]
        seq = self.seq[rows]
        place = self.group[rows].astype(np.int64) * (self.rank.max(initial=0) + 1) + self.rank[rows]
        is_new = np.diff(place, prepend=-1) != 0
        restarts = np.flatnonzero(~is_new & (np.diff(seq, prepend=0) < 0))
        if len(restarts):
            last = dict(zip(place[restarts].tolist(), restarts.tolist(), strict=True))
            keep = np.arange(len(rows)) >= np.array([last.get(one, 0) for one in place.tolist()])
            rows = rows[keep]
            self.notes.append(
                "The numbers of calls begin again in a group that was made anew: what came before is left out."
            )
        return rows

    @cached_property
    def parted(self) -> dict[int, int]:
        """Returns of each group, by its code, the first number at which its ranks gave other contents."""
        rows = self._order
        content = self._merged(rows)
        order = np.lexsort((self.seq[rows], self.group[rows]))
        group, seq, content = self.group[rows][order], self.seq[rows][order], content[order]
        if not len(order):
            return {}
        starts = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(seq, prepend=-1) != 0))
        differs = np.minimum.reduceat(content, starts) != np.maximum.reduceat(content, starts)
        first: dict[int, int] = {}
        for at in starts[differs].tolist():
            first.setdefault(int(group[at]), int(seq[at]))
        return first

    def _merged(self, rows: Ints) -> Ints:
        """Returns the content of each row; that of coalesced calls, which share a number, is that of all."""
        content, seq = self.content[rows], self.seq[rows]
        again = np.flatnonzero((np.diff(seq) == 0) & (np.diff(self.rank[rows]) == 0) & (np.diff(self.group[rows]) == 0))
        if not len(again):
            return content
        first = again[np.diff(again, prepend=-2) != 1]
        ends = {start: start for start in first.tolist()}
        for at in again.tolist():
            start = int(first[np.searchsorted(first, at, side="right") - 1])
            ends[start] = at + 1
        codes = {one: code for code, one in enumerate(self.contents)}
        for start, end in ends.items():
            parts = [self.contents[code] for code in content[start : end + 1].tolist()]
            whole = Content(
                " and ".join(sorted({one.op for one in parts})),
                tuple(sorted(map(repr, (one.numels for one in parts)))),
                tuple(sorted(map(repr, (one.dtypes for one in parts)))),
                f"{len(parts)} coalesced calls ({parts[0].shown}, ...)",
            )
            code = codes.setdefault(whole, len(self.contents))
            if code == len(self.contents):
                self.contents.append(whole)
            content[start : end + 1] = code
        self.content[rows] = content
        return content

    @cached_property
    def groups(self) -> list[Group]:
        """Returns all groups with calls."""
        rows = self._order
        group, rank = self.group[rows], self.rank[rows]
        bounds = np.searchsorted(group, np.arange(len(self.names) + 1))
        found = []
        for code, name in enumerate(self.names):
            low, high = int(bounds[code]), int(bounds[code + 1])
            if high == low:
                continue
            members = self._members.get(name)
            expected = self._expected(name, members)
            starts = low + np.flatnonzero(np.diff(rank[low:high], prepend=-1))
            ends = [*starts[1:].tolist(), high]
            calls: dict[int, Mapping[int, int]] = {}
            for start, end in zip(starts.tolist(), ends, strict=True):
                mine = rows[max(start, end - LONGEST) : end]
                calls[int(rank[start])] = _Rows(mine, self.seq[mine])
            for one in expected:
                if one not in calls and self.about.get(one, {}).get("is_whole"):
                    calls[one] = {}
            found.append(Group(name, members, calls))
        return found

    def _expected(self, name: str, members: Sequence[int] | None) -> Sequence[int]:
        """Returns the ranks with a dump that are known to be in a group: by its members, or as it is that of all."""
        if members:
            return [rank for rank in members if rank in self.about]
        return self.ranks if "(default_pg)" in name or name in ("unnamed 0", "unnamed 1") else []

    def created_ns(self, row: int) -> float:
        """Returns when a call was made, in unix nanoseconds."""
        return self.started_ns + float(self.start_us[row]) * NS_PER_US

    def line(self, row: int) -> str | None:
        """Returns the line of a call."""
        return None if self._line[row] < 0 else str(self._lines[self._line[row]])

    def state(self, row: int) -> str | None:
        """Returns how far a call was, as its dump has it."""
        return None if self._state[row] < 0 else str(self._states[self._state[row]])

    def is_unfinished(self, group: str, rank: int, seq: int) -> bool:
        """Returns whether a rank still worked on a call when it dumped, as far as the dump tells."""
        return (rank, group, seq) in self.unfinished


class _Rows(Mapping[int, int]):
    """Finds the row of a call by its number, and holds no more than arrays: a job has a million calls."""

    def __init__(self, rows: Ints, seq: npt.NDArray[np.float64]) -> None:
        self._rows, self._seq = rows, seq.astype(np.int64)

    def __getitem__(self, seq: int) -> int:
        at = int(np.searchsorted(self._seq, seq))
        if at == len(self._seq) or self._seq[at] != seq:
            raise KeyError(seq)
        return int(self._rows[at])

    def __iter__(self) -> Any:
        return iter(np.unique(self._seq).tolist())

    def __len__(self) -> int:
        return len(self._seq)


def _contents(frame: pd.DataFrame) -> tuple[list[Content], Ints]:
    """Returns the different contents, and which of them each call has."""
    codes = np.zeros(len(frame), np.int64)
    columns = []
    for name in TEXTS:
        code, values = pd.factorize(frame[name], use_na_sentinel=False)
        columns.append([None if pd.isna(value) else value for value in values])
        _, codes = np.unique(codes * len(columns[-1]) + code, return_inverse=True)
    _, first = np.unique(codes, return_index=True)
    cells = [frame[name].iloc[first].tolist() for name in TEXTS]
    contents: dict[Content, int] = {}
    made = [content_of(*(None if pd.isna(cell) else cell for cell in row)) for row in zip(*cells, strict=True)]
    of_code = np.array([contents.setdefault(one, len(contents)) for one in made] or [0], np.int64)
    return list(contents), of_code[codes]
