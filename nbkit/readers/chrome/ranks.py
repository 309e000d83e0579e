"""Tells apart processes that use the same ids in one file: ranks whose traces were merged, which may share a pid."""

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from nbkit.timeline.events import HOST, KERNEL, RUNTIME, Events, Ints

# Of the ids of a process so many are there again where several ranks share its number.
REPEATED = 0.25
LABEL = re.compile(r"(.*\D)\d+")


class Ranks:
    """Holds where the ids of each process begin again; rows, and whatever else has a thread, lie in file order."""

    def __init__(self, events: Events, pids: Sequence[object]) -> None:
        """Takes the pid of each thread."""
        names = list(dict.fromkeys(pids))
        self._pids = names
        self._of_thread = np.array([names.index(pid) for pid in pids], dtype=np.int64)
        self._begins: dict[int, Ints] = {}
        self._mixed: list[object] = []
        own = events.integers("own_id")
        rows = np.flatnonzero((events.kind == HOST) & (own > 0))
        process = self._of_thread[events.thread[rows]]
        for number in np.unique(process).tolist():
            mine = rows[process == number]
            ids, counts = np.unique(own[mine], return_counts=True)
            if len(mine) - len(ids) >= max(REPEATED * len(mine), 1):
                begins = _restarts(mine, own[mine])
                # No id is there more often than there are ranks; an op with the id of the one around it is no rank.
                if len(begins) < counts.max():
                    self._begins[number] = begins
                elif _are_twins(events, mine, own[mine]):
                    self._mixed.append(names[number])

    @property
    def notes(self) -> list[str]:
        apart = [
            f"{len(rows) + 1} ranks share the process id {self._pids[number]} in this file; they are told apart by "
            "where their ids begin again."
            for number, rows in self._begins.items()
        ]
        return apart + [
            f"Ranks share the process id {pid} in this file, their events mixed in order of time: nothing tells them "
            "apart, and device work may be told of the wrong rank's op."
            for pid in self._mixed
        ]

    def threads(self, thread: Ints, position: Ints) -> Ints:
        """Returns numbers of threads that ranks do not share; `position` is how many rows came before."""
        result = thread.copy()
        for number, rows in self._begins.items():
            mine = self._of_thread[thread] == number
            result[mine] += np.searchsorted(rows, position[mine], side="right") * len(self._of_thread)
        return result

    def part_ids(self, events: Events) -> bool:
        """Gives each process ids of its own, device work those of who launched it; returns whether any were shared."""
        part, thread = np.divmod(events.thread, len(self._of_thread))
        process = part * len(self._pids) + self._of_thread[thread]
        pairs = (("correlation", "correlation", RUNTIME), ("own_id", "external_id", HOST))
        shared = [self._part(events, process, *pair) for pair in pairs]
        return any(shared)

    def _part(self, events: Events, process: Ints, made: str, taken: str, kind: int) -> bool:
        ids, taken_ids = events.integers(made), events.integers(taken)
        rows = np.flatnonzero((events.kind == kind) & (ids > 0))
        rows = rows[np.isin(ids[rows], _of_several(ids[rows], process[rows]))]
        first: dict[int, dict[int, int]] = defaultdict(dict)  # rows by id and process
        new_ids: dict[tuple[int, int], int] = {}
        next_id = int(max(ids.max(initial=0), taken_ids.max(initial=0))) + 1
        for row, key, number in zip(rows.tolist(), ids[rows].tolist(), process[rows].tolist(), strict=True):
            first[key].setdefault(number, row)
            ids[row] = new_ids.setdefault((key, number), next_id + len(new_ids))
        takers = np.flatnonzero((events.kind == KERNEL) & np.isin(taken_ids, list(first)))
        for key in np.unique(taken_ids[takers]).tolist():
            work = takers[taken_ids[takers] == key]
            taken_ids[work] = [new_ids[key, number] for number in self._launchers(work.tolist(), first[key], process)]
        return bool(first)

    def _launchers(self, work: list[int], first: dict[int, int], process: Ints) -> list[int]:
        """Returns the process of each of these events of device work: of the same pid or label, else in file order."""
        result: dict[int, int] = {}
        by_candidates: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row in work:
            label = self._label(int(process[row]))
            same = [number for number in first if number == process[row] or (label and label == self._label(number))]
            by_candidates[tuple(same or first)].append(row)
        for candidates, rows in by_candidates.items():
            is_even = len(rows) % len(candidates) == 0
            for at, row in enumerate(rows):
                begun = [number for number in candidates if first[number] < row] or candidates[:1]
                result[row] = candidates[at * len(candidates) // len(rows)] if is_even else begun[-1]
        return [result[row] for row in work]

    def _label(self, number: int) -> str | None:
        match = LABEL.fullmatch(str(self._pids[number % len(self._pids)]))
        return match[1] if match else None


def _are_twins(events: Events, rows: Ints, ids: Ints) -> bool:
    """Returns whether most ops with the id of another one have its name, too, and are not inside of it."""
    order = np.lexsort((events.start_ns[rows], ids))
    rows, ids = rows[order], ids[order]
    end = events.start_ns[rows] + events.duration_ns[rows]
    is_same = np.diff(ids) == 0
    is_again = is_same & (np.diff(end) > 0)
    pairs = zip(rows[:-1][is_again].tolist(), rows[1:][is_again].tolist(), strict=True)
    alike = sum(events.name[first] == events.name[second] for first, second in pairs)
    return bool(2 * alike > is_same.sum())


def _of_several(ids: Ints, process: Ints) -> Ints:
    """Returns the ids that more than one process has; most files have none."""
    order = np.lexsort((process, ids))
    ids, process = ids[order], process[order]
    shared: Ints = ids[1:][(ids[1:] == ids[:-1]) & (process[1:] != process[:-1])]
    return shared


def _restarts(rows: Ints, ids: Ints) -> Ints:
    """Returns the rows at which an id is there again since the last such row."""
    begins: list[int] = []
    seen: set[int] = set()
    for row, key in zip(rows.tolist(), ids.tolist(), strict=True):
        if key in seen:
            begins.append(row)
            seen.clear()
        seen.add(key)
    return np.array(begins, dtype=np.int64)
