"""Job is the trace of several ranks: their rows stay in Parquet, and DuckDB answers what is asked of them."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from nbkit.errors import OptionError, TraceError
from nbkit.schema import TABLES
from nbkit.trace.job.database import Database
from nbkit.trace.job.ranks import (
    MISSING,
    READ,
    Rank,
    error_text,
    left_out_note,
    named,
    rank_folders,
    ranks_frame,
    read_ranks,
)
from nbkit.trace.trace import Trace

VERB = "ranks"  # of meta: the view that shows a job


class Job(Trace):
    """Holds the ranks of a job that saved their traces to `FOLDER/rank=N`, as one trace; `nbkit.load(FOLDER)` gives it.

    `ranks` is a small frame, a row per rank, and `findings` has what is wrong in them. All other frames are views for
    `sql()`, named as the frames, each with the column `rank`; nothing reads their rows into memory at once. `rank(N)`
    is the trace of one of them.
    """

    def __init__(self, folder: Path, meta: Mapping[str, Any] = {}) -> None:
        """Reads meta.json and the footers of all ranks. Raises TraceError if no rank can be read, or without DuckDB."""
        self.folder = folder
        self.known = read_ranks(rank_folders(folder))
        if not any(one.rows for one in self.known):
            problem = next((text for one in self.known for text in one.problems), "there is none")
            raise TraceError(f"No rank of {folder} can be read: {problem}; record or copy the job again.")
        names = [name for name in TABLES if any(name in one.rows for one in self.known)]
        self.files = {
            name: {one.rank: one.path / f"{name}.parquet" for one in self.known if name in one.rows} for name in names
        }
        self.database = Database(self.files)
        super().__init__({"ranks": ranks_frame(self.known)}, {**_meta(folder, self.known), **meta})

    def copy_with(self, frames: Mapping[str, pd.DataFrame], meta: Mapping[str, Any]) -> "Job":
        """Returns the same job with other frames in memory and another meta."""
        copy = Job.__new__(Job)
        copy.folder, copy.known, copy.files, copy.database = self.folder, self.known, self.files, self.database
        Trace.__init__(copy, frames, meta)
        return copy

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name in self.__dict__.get("files", ()) and name not in self.__dict__.get("frames", ()):
            some = next(iter(self.files[name]))
            raise AttributeError(
                f"The frame {name} of a job stays in its files: ask trace.sql('SELECT * FROM {name} LIMIT 10'), or "
                f"take that of one rank, trace.rank({some}).{name}."
            )
        return super().__getattr__(name)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Returns how many rows each view has."""
        return {name: sum(one.rows.get(name, 0) for one in self.known) for name in self.files}

    @cached_property
    def first_rows(self) -> dict[int, int]:
        """Returns of each rank with ops how many rows of ops the ranks before it have."""
        first, so_far = dict[int, int](), 0
        for one in self.known:
            if one.rows.get("ops"):
                first[one.rank] = so_far
                so_far += one.rows["ops"]
        return first

    @property
    def slowest(self) -> int:
        """Returns the rank with ops that took longest; the first one where no times are known."""
        ranks = self.ranks[self.ranks["rank"].isin([*self.first_rows])]
        longest = ranks.sort_values("wall_us", ascending=False, kind="stable", na_position="last")
        return int(longest["rank"].iloc[0])

    def sql(self, query: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """Returns the result of a query in DuckDB's SQL over the views: ops, modules, ..., each with the column `rank`.

        `parameters` stand for the question marks of the query. A result is as large as the query makes it: let it sum,
        or limit it. Raises OptionError on a query that DuckDB cannot run, TraceError if it runs out of memory.

            trace.sql("SELECT rank, sum(self_time_us) AS us FROM ops GROUP BY rank ORDER BY us DESC")
        """
        if not isinstance(query, str) or not query.strip():
            raise OptionError(f"A query is expected as SQL, and this is {query!r}; give 'SELECT * FROM ops LIMIT 10'.")
        return self.database.frame(query, parameters)

    def rank(self, number: int) -> Trace:
        """Returns the trace of one rank, all its frames in memory. Raises OptionError if there is no such rank."""
        found = [one for one in self.known if one.rank == number and not isinstance(number, bool)]
        if not found:
            raise OptionError(f"There is no rank {number!r}; give one of {named([one.rank for one in self.known])}.")
        if found[0].state == MISSING:
            raise TraceError(f"Rank {number} is missing in {self.folder}; copy its folder there, or give another one.")
        return Trace.load(found[0].path)

    def save(self, path: str | Path, *, values: Any = None) -> Path:
        """Raises TraceError: the ranks are saved already, each in its folder."""
        raise TraceError(f"The job is saved already, a folder per rank in {self.folder}; copy that folder instead.")

    def __repr__(self) -> str:
        rows = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        return f"<Job {self.meta.get('name', '')!r}: {len(self.known)} ranks, {rows}>"


def _meta(folder: Path, ranks: Sequence[Rank]) -> dict[str, Any]:
    """Returns what is known about a job as a whole."""
    read = [one for one in ranks if one.meta]
    errors = [(one.rank, text) for one in read if (text := error_text(one.meta.get("error")))]
    ended = [one.rank for one in read if one.state == READ and one.meta.get("complete") is not True]
    error = (
        f"rank {errors[0][0]} ended by {errors[0][1]}" if errors else f"{named(ended)} ended early" if ended else None
    )
    if len(errors) > 1:
        error = f"{error}; {named([rank for rank, _ in errors[1:]])} by errors, too"
    walls = [float(one.meta["wall_us"]) for one in read if isinstance(one.meta.get("wall_us"), int | float)]
    first = read[0].meta if read else {}
    return {
        "verb": VERB,
        "name": folder.resolve().name,
        "created": first.get("created"),
        "versions": first.get("versions") or {},
        "devices": sorted({str(device) for one in read for device in one.meta.get("devices") or []}),
        "complete": error is None,
        "error": error,
        "wall_us": max(walls, default=None),
        "notes": [note] if (note := left_out_note(ranks)) else [],
    }
