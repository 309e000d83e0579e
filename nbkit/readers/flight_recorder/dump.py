"""Reads one dump of the flight recorder, a pickle or JSON, and tells of which rank it is and when it was made."""

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbkit.errors import TraceError
from nbkit.readers.reader import Head, head_of
from nbkit.readers.snapshot.plain_pickle import load_plain
from nbkit.readers.text_file import GZIP, cannot_read, text_pieces

EXPECTED = "expected a dump that torch._C._distributed_c10d._dump_fr_trace() or nbkit.dump_ranks() wrote"
# What a dump says of itself, in the order in which it stands at its beginning.
KEYS = re.compile(rb"[\x00-\x14\"](version|entries|pg_config|comm_lib_version|nccl_comm_state|pg_status)[q\x94\"]")
# Of a Chrome trace, whose description of its groups has some of these names.
CHROME = re.compile(rb'"(traceEvents|distributedInfo|schemaVersion|deviceProperties)"')
RANK = re.compile(r"rank[_=-]?(\d+)")
LAST_NUMBER = re.compile(r"(\d+)$")
SUFFIX = re.compile(r"(\.(pkl|pickle|json|gz))+$")
SIDECAR = "dump.json"


@dataclass(frozen=True)
class Dump:
    """Holds what one process dumped. `rank` is null where no name tells it; `is_whole` if its ring dropped nothing.

    `groups` are the members of process groups by name and description, as far as they are known, and `dumped_ns` is
    when it was dumped at the latest, in unix nanoseconds.
    """

    path: Path
    rank: int | None
    entries: list[dict[str, Any]]
    groups: Mapping[tuple[str, str], list[int]]
    is_whole: bool
    dumped_ns: int
    about: Mapping[str, Any] = field(default_factory=dict)


def looks_like_dump(head: Head) -> bool:
    """Returns whether a file begins as a dump does: a pickle of a dict with its keys, or such JSON."""
    data = head.unpacked
    is_pickle = data[:1] == b"\x80" and b"}" in data[:13]
    is_json = data.lstrip()[:1] == b"{" and CHROME.search(data) is None
    return (is_pickle or is_json) and KEYS.search(data) is not None


def dump_files(folder: Path) -> list[Path]:
    """Returns the dumps in a folder, and in the folders rank=N in it."""
    folders = [folder, *sorted(one for one in folder.glob("rank=*") if one.is_dir())]
    files = (file for one in folders for file in sorted(one.iterdir()) if not file.name.startswith("."))
    return [file for file in files if file.is_file() and file.name != SIDECAR and looks_like_dump(head_of(file))]


def read_dump(path: Path) -> Dump:
    """Returns what a file holds. Raises TraceError if it is absent, damaged, or no dump."""
    text = b"\x80" not in _first_bytes(path)
    data = _json(path) if text else load_plain(path, EXPECTED)
    if not isinstance(data, dict) or not {"entries", "pg_config", "pg_status", "version"} & set(data):
        raise TraceError(f"{path} is no dump of the flight recorder; {EXPECTED}.")
    entries = data.get("entries") or []
    if not isinstance(entries, list) or not set(map(type, entries)) <= {dict}:
        raise TraceError(f"{path} has entries that are no calls of collectives; {EXPECTED}.")
    about = _sidecar(path)
    rank = about["rank"] if isinstance(about.get("rank"), int) else rank_of(path)
    first = entries[0].get("record_id") if entries else None
    is_whole = first == 0 if entries else "entries" in data and not data.get("pg_status")
    return Dump(path, rank, entries, _groups(data.get("pg_config")), is_whole, _dumped_ns(path, about), about)


def rank_of(path: Path) -> int | None:
    """Returns the rank that the name of a dump ends in, or that of its folder `rank=N`; null if neither has one."""
    name = SUFFIX.sub("", path.name)
    found = RANK.search(name) or RANK.fullmatch(path.parent.name) or LAST_NUMBER.search(name)
    return int(found[1]) if found and len(found[1]) < 10 else None


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            first = file.read(2)
        if first == GZIP:
            with gzip.open(path) as packed:
                return packed.read(1)
        return first[:1]
    except (OSError, EOFError) as error:
        raise cannot_read(path, error if isinstance(error, OSError) else OSError(str(error))) from error


def _json(path: Path) -> Any:
    try:
        return json.loads("".join(text_pieces(path)))
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path} is cut off or no JSON ({error}); {EXPECTED}.") from error


def _sidecar(path: Path) -> dict[str, Any]:
    """Returns what nbkit.dump_ranks() wrote beside a dump; nothing beside those of others."""
    try:
        known = json.loads((path.parent / SIDECAR).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and known.get("file") == path.name else {}


def _dumped_ns(path: Path, about: Mapping[str, Any]) -> int:
    known = about.get("dumped_ns")
    return known if isinstance(known, int) else path.stat().st_mtime_ns


def _groups(config: Any) -> dict[tuple[str, str], list[int]]:
    """Returns the members of each group that is named; gloo has one without a name, which stands for any of them."""
    groups: dict[tuple[str, str], list[int]] = {}
    for name, one in config.items() if isinstance(config, dict) else ():
        ranks = one.get("ranks") if isinstance(one, dict) else None
        try:
            members = json.loads(ranks) if isinstance(ranks, str) else ranks
        except ValueError:
            continue
        if name and isinstance(members, list) and members and all(isinstance(rank, int) for rank in members):
            groups[str(one.get("name") or name), str(one.get("desc") or "")] = sorted(members)
    return groups
