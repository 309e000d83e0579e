"""Makes the frame `collectives` of the entries of many dumps, each different text once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from nbkit.errors import TraceError
from nbkit.ops.collectives import collective_of
from nbkit.ops.scalar_types import dtype_named
from nbkit.readers.chrome.names import is_user_path
from nbkit.readers.element_sizes import element_bytes
from nbkit.readers.flight_recorder.dump import Dump
from nbkit.readers.text_file import encodable
from nbkit.schema import COLLECTIVES, TEXT, nullable

Ints = npt.NDArray[np.int64]
# Members of larger groups stand once in meta, and not in each row.
MOST_LISTED = 64
UNDESCRIBED = ("", "undefined")
# The groups of the whole job that TORCH_DISTRIBUTED_DEBUG=DETAIL leaves without a name: of calls, and of its checks.
# Those made later have in each process the number that it had come to, which tells nothing about others.
UNNAMED_WORLD = ("unnamed 0", "unnamed 1")
WORLD = "(default_pg)"
API_FILE = "distributed_c10d.py"
UNFINISHED = 100
MOST_BYTES = 1 << 62
SIDES = ("input", "output")
# What is read of a call, and what stands where a dump lacks it.
FIELDS: dict[str, Any] = {
    "process_group": ("", ""), "pg_id": 0, "profiling_name": "", "input_sizes": (), "input_dtypes": (),
    "output_sizes": (), "output_dtypes": (), "collective_seq_id": 0, "p2p_seq_id": 0, "is_p2p": False,
    "time_created_ns": 0, "time_discovered_started_ns": 0, "time_discovered_completed_ns": 0, "state": None,
    "retired": True, "frames": (),
}  # fmt: skip
NOT_READ = "has an entry that is not written as torch does ({}: {}); dump it again, or leave this file out"


class Kind(NamedTuple):
    """Holds what calls have in common that differ in rank, number, time and line alone."""

    op: str
    group: str
    peer: int | None
    input_shapes: str
    output_shapes: str
    input_dtypes: str
    output_dtypes: str
    size_bytes: int | None


class Columns:
    """Takes one dump after the other, and gives the frame of all their calls."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, ...], int] = {}
        self.described: list[Kind] = []
        self.sources: dict[str | None, int] = {None: 0}
        self.states: dict[str, int] = {}
        self.parts: list[dict[str, Any]] = []
        self.groups: dict[str, list[int]] = {}
        self.started_ns = 0

    def add(self, dump: Dump) -> dict[str, Any]:
        """Takes the calls of a dump, and returns what meta says of its rank. Raises TraceError if one is unreadable."""
        try:
            part = self._part(dump)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise TraceError(f"{dump.path} {NOT_READ.format(type(error).__name__, error)}.") from error
        rows = np.flatnonzero(~part.pop("retired"))[-UNFINISHED:].tolist()
        self.parts.append(part)
        return {
            "rank": dump.rank,
            "file": dump.path.name,
            "calls": len(part["kind"]),
            "is_whole": dump.is_whole,
            "dumped_ns": dump.dumped_ns,
            "unfinished": [[self.described[part["kind"][row]].group, int(part["seq"][row])] for row in rows],
        }

    def _part(self, dump: Dump) -> dict[str, Any]:
        fields, count = _fields(dump.entries), len(dump.entries)
        is_p2p = np.fromiter(map(bool, fields["is_p2p"]), bool, count)
        begun, ended = (_numbers(fields[f"time_discovered_{what}_ns"]) for what in ("started", "completed"))
        return {
            "rank": np.full(count, -1 if dump.rank is None else dump.rank, np.int32),
            "kind": self._kinds(fields, dump),
            "source": self._sources(fields["frames"]),
            "is_p2p": is_p2p,
            "seq": np.where(is_p2p, _numbers(fields["p2p_seq_id"]), _numbers(fields["collective_seq_id"])),
            "created": _numbers(fields["time_created_ns"]),
            "took": np.where((begun > 0) & (ended > 0), ended - begun, -1),
            "state": _coded(map(str, fields["state"]), self.states, count),
            "retired": np.fromiter((value is not False for value in fields["retired"]), bool, count),
        }

    def _kinds(self, fields: Mapping[str, Sequence[Any]], dump: Dump) -> npt.NDArray[np.int32]:
        """Returns which kind each call is; of many calls few differ."""
        names, calls = [*map(tuple, fields["process_group"])], fields["profiling_name"]
        labels = {name: self._label(name, dump) for name in set(names)}
        groups = [*map(labels.__getitem__, names)]
        if "" in labels.values():  # as TORCH_DISTRIBUTED_DEBUG=DETAIL leaves them
            calls = [_api_of(stack) or call for stack, call in zip(fields["frames"], calls, strict=True)]
            groups = [_unnamed(number, dump.rank) for number in fields["pg_id"]]
        texts = [map(repr, fields[f"{side}_{what}"]) for side in SIDES for what in ("sizes", "dtypes")]
        keys = [*zip(groups, calls, *texts, strict=True)]
        codes = [*map(self.kinds.get, keys)]
        for row in [row for row, code in enumerate(codes) if code is None]:
            if keys[row] not in self.kinds:
                self.kinds[keys[row]] = len(self.described)
                self.described.append(self._describe(groups[row], calls[row], dump.entries[row]))
            codes[row] = self.kinds[keys[row]]
        return np.array(codes, np.int32)

    def _sources(self, stacks: Sequence[Sequence[Mapping[str, Any]]]) -> npt.NDArray[np.int32]:
        # torch has one dict per frame, which all stacks share that have it.
        keys = [*map(tuple, map(map, repeat(id), stacks))]
        lines = {}
        for key, stack in dict(zip(keys, stacks, strict=True)).items():
            lines[key] = self.sources.setdefault(user_line(stack), len(self.sources))
        return np.fromiter(map(lines.__getitem__, keys), np.int32, len(keys))

    def _label(self, name: tuple[str, str], dump: Dump) -> str:
        """Returns what a group is called; where ranks give one name to different groups, with its members."""
        group = str(name[0] or "") if not name[0] or name[1] in UNDESCRIBED else f"{name[0]} ({name[1]})"
        members = dump.groups.get(name)
        if members and self.groups.setdefault(group, members) != members:
            group = f"{group} of ranks {', '.join(map(str, members[:MOST_LISTED]))}"
            self.groups.setdefault(group, members)
        return group

    def _describe(self, group: str, name: str, one: Mapping[str, Any]) -> Kind:
        call, _, peers = str(name).rpartition(":")[2].partition(" ")
        dtypes = [
            [dtype_named(dtype) or str(dtype).lower() for dtype in one.get(f"{side}_dtypes") or ()] for side in SIDES
        ]
        shapes = [[[*map(int, shape)] for shape in one.get(f"{side}_sizes") or ()] for side in SIDES]
        widths = [element_bytes(dtype) for dtype in dtypes[0]]
        are_known = None not in widths and len(widths) == len(shapes[0])
        size_bytes = sum(prod(shape) * (width or 0) for shape, width in zip(shapes[0], widths, strict=False))
        peer = _peer(call, peers, self.groups.get(group, []))
        size = size_bytes if are_known and 0 <= size_bytes < MOST_BYTES else None
        sent, got = map(json.dumps, shapes)
        return Kind(collective_of(call), group, peer, sent, got, json.dumps(dtypes[0]), json.dumps(dtypes[1]), size)

    def world_sizes(self) -> Iterable[int]:
        """Yields of how many ranks the group of all is, as its all_gathers tell: [4] goes in, [n, 4] comes out."""
        for one in self.described:
            sent, got = json.loads(one.input_shapes), json.loads(one.output_shapes)
            if one.op == "all_gather" and one.group.endswith(WORLD) and len(sent) == len(got) == 1:
                yield from got[0][:1] if got[0][1:] == sent[0] else ()

    def frame(self) -> pd.DataFrame:
        """Returns the frame: ranks one after the other, the calls of each in their order."""
        whole = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        self.parts.clear()
        kind, created, took = whole.pop("kind"), whole.pop("created"), whole.pop("took")
        self.started_ns = int(created[created > 0].min()) if (created > 0).any() else 0
        listed = [self.groups.get(one.group, []) for one in self.described]
        members = [json.dumps(ranks) if 0 < len(ranks) <= MOST_LISTED else None for ranks in listed]
        of_kind = dict(zip(Kind._fields, zip(*self.described, strict=True), strict=True)) if self.described else {}
        numbers = {name: numbers_of(of_kind.pop(name, ()), kind) for name in ("peer", "size_bytes")}
        return COLLECTIVES.frame(
            {
                "rank": nullable(whole.pop("rank")),
                **{name: texts_of(values, kind) for name, values in of_kind.items()},
                **numbers,
                "group_ranks": texts_of(members, kind),
                "seq": nullable(whole.pop("seq")),
                "is_p2p": whole.pop("is_p2p"),
                "start_us": np.where(created > 0, (created - self.started_ns) / 1e3, np.nan),
                "duration_us": np.where(took >= 0, took / 1e3, np.nan),
                "state": texts_of([*self.states], whole.pop("state")),
                "source": texts_of([*self.sources], whole.pop("source")),
            }
        )


def user_line(frames: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the line of the innermost call in the user's own code, `train.py:41`; null without such a frame."""
    for frame in frames:
        if is_user_path(path := str(frame["filename"])):
            return encodable(f"{path}:{frame['line']}")
    return None


def _api_of(frames: Sequence[Mapping[str, Any]]) -> str:
    """Returns the function of torch.distributed that the user called; empty where the innermost call is none of it."""
    first = frames[0] if frames else {}
    return str(first.get("name")) if str(first.get("filename")).endswith(API_FILE) else ""


def _peer(call: str, peers: str, members: Sequence[int]) -> int | None:
    """Returns the global rank at the other end of `send 0->1` or `recv 1<-0`, which name the ranks in their group."""
    other = peers.rpartition("->" if call == "send" else "<-")[2]
    number = int(other) if other.isdecimal() else -1
    return members[number] if 0 <= number < len(members) else None


def _unnamed(number: Any, rank: int | None) -> str:
    """Returns what a group without a name is called: later ones have a number that only their process knows."""
    group = f"unnamed {number}"
    return group if group in UNNAMED_WORLD else f"{group} of rank {rank}"


def _fields(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[Any]]:
    """Returns the values of each field, one per call; what a dump of another version lacks has a default."""
    try:
        rows = [*map(itemgetter(*FIELDS), entries)]
    except KeyError:
        rows = [tuple(one.get(name, FIELDS[name]) for name in FIELDS) for one in entries]
    return dict(zip(FIELDS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(FIELDS, ())


def _numbers(values: Sequence[int | None]) -> Ints:
    if values.count(None):
        return np.fromiter((value or 0 for value in values), np.int64, len(values))
    return np.array(values, np.int64)


def _coded(texts: Iterable[str], codes: dict[str, int], count: int) -> npt.NDArray[np.int8]:
    return np.fromiter((codes.setdefault(text, len(codes)) for text in texts), np.int8, count)


def texts_of(texts: Sequence[str | None], codes: Ints) -> Any:
    """Returns a column of texts by their codes."""
    values = pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32()), pa.array([text and encodable(text) for text in texts], pa.large_string())
    )
    return TEXT.__from_arrow__(values.cast(pa.large_string()))  # type: ignore[attr-defined]


def numbers_of(values: Sequence[int | None], codes: Ints) -> Any:
    """Returns a column of integers by their codes."""
    known = np.array([-1 if value is None else value for value in values] or [-1], np.int64)
    return nullable(known[codes])
