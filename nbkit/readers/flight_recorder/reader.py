"""Reads dumps of torch's flight recorder as a Trace: one of one process, or those of a whole job in a folder."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbkit import units
from nbkit.errors import TraceError
from nbkit.findings.collectives.rules import collective_findings
from nbkit.progress import Progress
from nbkit.readers.flight_recorder.columns import Columns
from nbkit.readers.flight_recorder.dump import dump_files, looks_like_dump, rank_of, read_dump
from nbkit.readers.reader import Reader
from nbkit.trace.gc_paused import gc_paused
from nbkit.trace.trace import Trace

WORDS = "a dump of torch's flight recorder"
NO_LINES = "No dump has stacks, so that no call has its line: JSON never has them; dump pickles for these."


def read_flight_recorder(path: str | Path) -> Trace:
    """Returns the frame collectives of one dump. Raises TraceError if it is absent, damaged or of another kind."""
    return _trace([Path(path)], Path(path).name, is_alone=True)


def read_flight_recorders(folder: Path) -> Trace:
    """Returns the frame collectives of all dumps in a folder and its folders rank=N, and why the job hangs.

    Ranks are told by the names of the files. Of a rank that dumped a pickle and JSON the pickle is read. Raises
    TraceError where there is no dump, one is damaged, or two are of the same rank.
    """
    if not folder.is_dir():
        raise TraceError(f"There is no folder {folder}; give that of the dumps, or of the folders rank=N with them.")
    files = dump_files(folder)
    if not files:
        raise TraceError(f"{folder} holds no dump of torch's flight recorder; {_instead(folder)}")
    return _trace(_once(files) if len(files) > 1 else files, folder.resolve().name)


def _instead(folder: Path) -> str:
    """Says what to do where a folder holds no dump."""
    if any(folder.glob("fr_trace_*.txt")):
        return (
            "what torch's debug server writes here are tables of its own: save what /fr_trace_json of each worker says."
        )
    return "let each process write one by nbkit.dump_ranks(folder)."


def _trace(files: Sequence[Path], name: str, *, is_alone: bool = False) -> Trace:
    columns, ranks, about, done = Columns(), [], [], 0

    def describe() -> str:
        return f"reading dumps: {done} of {len(files)}"

    with gc_paused(), Progress(describe, done=lambda: done / len(files)):
        for path in files:
            dump = read_dump(path)
            ranks.append(columns.add(dump))
            about.append(dump.about)
            done += 1
        frame = columns.frame()
    meta = _meta(name, bool(frame["source"].isna().all()), columns, ranks, about)
    if is_alone and ranks[0]["rank"] is not None:
        meta["rank"] = ranks[0]["rank"]
    findings, notes = collective_findings(frame, meta)
    return Trace({"collectives": frame, "findings": findings}, {**meta, "notes": [*meta["notes"], *notes]})


def _once(files: Sequence[Path]) -> list[Path]:
    """Returns one dump of each rank, a pickle where JSON is beside it. Raises TraceError for two, or of no rank."""
    of_rank: dict[int, list[Path]] = {}
    for path in files:
        rank = rank_of(path)
        if rank is None:
            raise TraceError(f"{path} does not say of which rank it is; let its name end in the number: rank_3.pkl.")
        of_rank.setdefault(rank, []).append(path)
    for rank, paths in of_rank.items():
        if len(paths) > 1:
            paths[:] = [path for path in paths if ".json" not in path.suffixes] or paths
        if len(paths) > 1:
            raise TraceError(
                f"{paths[0].parent} has {len(paths)} dumps of rank {rank} ({', '.join(path.name for path in paths)}); "
                "leave those of one moment, or give each job and moment a folder of its own."
            )
    return [of_rank[rank][0] for rank in sorted(of_rank)]


def _meta(
    name: str, is_blind: bool, columns: Columns, ranks: list[dict[str, Any]], about: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    started = columns.started_ns
    sizes = [one["world_size"] for one in about if isinstance(one.get("world_size"), int)]
    world = max([*sizes, *columns.world_sizes(), *map(len, columns.groups.values())], default=None)
    notes = [NO_LINES] if is_blind and any(one["calls"] for one in ranks) else []
    wrapped = sum(not one["is_whole"] for one in ranks)
    if wrapped:
        notes.append(f"{units.counted(wrapped, 'dump')} of {len(ranks)} begin after the first call of the process.")
    return {
        "verb": "hang",
        "name": name,
        "created": datetime.fromtimestamp(started / 1e9, UTC).isoformat() if started else None,
        "source": "torch's flight recorder",
        "complete": True,
        "error": None,
        "versions": {},
        "notes": notes,
        **({} if world is None else {"world_size": world}),
        "started_ns": started,
        "ranks": ranks,
        "groups": {group: members for group, members in columns.groups.items() if members},
    }


FLIGHT_RECORDER = Reader(WORDS, read_flight_recorder, of_bytes=looks_like_dump)
