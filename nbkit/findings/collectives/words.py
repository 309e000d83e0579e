"""Words ranks, calls and lines, the same in every finding about collectives."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from nbkit import units
from nbkit.findings.collectives.dumps import Dumps

MOST_RANGES = 6


def ranks_text(ranks: Iterable[int]) -> str:
    """Returns 'rank 1', 'ranks 0, 2 and 3', or 'ranks 0 to 4 and 6 to 1,023'."""
    numbers = sorted(ranks)
    runs = [[rank for _, rank in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]:,} to {run[-1]:,}"] if len(run) > 2 else [f"{rank:,}" for rank in run]
    more = [f"{len(parts) - MOST_RANGES + 1} more"] if len(parts) > MOST_RANGES else []
    parts = parts[: MOST_RANGES - len(more)] + more
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"rank{'' if len(numbers) == 1 else 's'} {listed}"


def of_ranks(job: Dumps, ranks: Sequence[int]) -> str:
    """Returns the same, and of how many where they are many: '(15 of 16)'."""
    return f"{ranks_text(ranks)}{f' ({len(ranks):,} of {len(job.ranks):,})' if len(ranks) > 3 else ''}"


def call_text(job: Dumps, row: int) -> str:
    """Returns what a call is: 'all_reduce of float32 [5]'."""
    return job.contents[int(job.content[row])].shown


def at(job: Dumps, rows: Iterable[int]) -> str:
    """Returns ' at train.py:18' of the lines of calls, the most frequent first; empty where they are not known."""
    lines = [line for row in rows if (line := job.line(row)) is not None]
    if not lines:
        return ""
    ordered = sorted(dict.fromkeys(lines), key=lambda line: -lines.count(line))
    return f" at {ordered[0]}" + (f" and {units.counted(len(ordered) - 1, 'other line')}" if len(ordered) > 1 else "")


def most_frequent(job: Dumps, rows: Iterable[int]) -> str | None:
    """Returns the line that most of these calls have; null where none is known."""
    lines = [line for row in rows if (line := job.line(row)) is not None]
    return max(dict.fromkeys(lines), key=lines.count) if lines else None


def evidence(
    job: Dumps, group: str, row: int, seq: int, ranks: Iterable[int], made_by: Iterable[int], **more: Any
) -> dict[str, Any]:
    """Returns what all findings here measured: group, number, op and row of the call, the ranks that are named for it,
    and those that made it.
    """
    op = job.contents[int(job.content[row])].op
    return {"group": group, "seq": seq, "op": op, "row": int(row), "ranks": [*ranks], "made_by": [*made_by], **more}
