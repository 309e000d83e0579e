"""Reads a plan's memory: what each device needs, its blocks, at level 3 every tensor in them. Units are 10^6 bytes."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from nbkit.readers.oneflow.dtypes import dtype_name
from nbkit.readers.oneflow.text.operator_line import sizes
from nbkit.readers.text_proto import finite

WHOLE = r"(-?\d{1,15})"
MIB = r"\[ ?([^\s\[\]]{1,40}) MiB ?\]"
PLACE = rf"Rank: ?{WHOLE} ?, Device: ?{WHOLE}"
PLAN = re.compile(
    rf"(?:Graph name (\S+) in {PLACE} needs to allocate|(?:Plan:|Graph name) (\S+) needs to allocate) {MIB}"
    rf"(?:.{{0,80}}?{PLACE})?"
)
PART = re.compile(rf"{MIB}(?:.{{0,40}}?(?:mem_block_num|num) ?= ?(\d{{1,15}}))?")
PARTS = (("chunk", "chunk"), ("unreused", "unreused"), ("eager variable", "eager_variables"))
# The lines of blocks, tensors in chunks and others; of each the names of its groups.
BLOCK = re.compile(
    rf"In Device: {WHOLE} Chunk id: {WHOLE} MemBlock id: {WHOLE} has num = {WHOLE} tensors? with mem size = (\S+)"
)
OF_BLOCK = ("device", "chunk", "block", "tensors", "mb")
IN_CHUNK = re.compile(
    rf"In Chunk id: {WHOLE}(?:, MemBlock id: {WHOLE})? Order: {WHOLE} ?,duration: {WHOLE} ?,"
    r"size: (\S+) MiB, name: (\S+)"
)
OF_CHUNK = ("chunk", "block", "order", "duration", "mb", "tensor")
ALONE = re.compile(rf"In Device: {WHOLE} Memblock id: {WHOLE}\s+(\w+)\s+size: (\S+) MiB, name: (\S+)")
OF_ALONE = ("device", "block", "kind", "mb", "tensor")
CONVERT: dict[str, Callable[[str], Any]] = {"mb": finite, "kind": str, "tensor": str}
SHAPE = re.compile(r"shape: \(([^()]{0,400})\) ?,dtype: (\w{1,40})")
UNIT = "10^6 bytes, whatever the log calls it"


class Memory:
    """Holds rows of JSON data: `plans`, one per rank and device; `blocks`; `tensors`."""

    def __init__(self) -> None:
        self.plans: list[dict[str, Any]] = []
        self.blocks: list[dict[str, Any]] = []
        self.tensors: list[dict[str, Any]] = []

    def line(self, text: str) -> bool:
        """Takes a line on memory; returns False if it is none."""
        if match := BLOCK.search(text):
            self.blocks.append(_row(OF_BLOCK, match))
        elif match := PLAN.search(text):
            graph, rank, device, plan, size, plan_rank, plan_device = match.groups()
            where = {"rank": _int(rank or plan_rank), "device": _int(device or plan_device)}
            self.plans.append({"graph": graph or plan, **where, "total_mb": finite(size)})
        elif match := IN_CHUNK.search(text):
            self.tensors.append({"kind": "chunk", **_row(OF_CHUNK, match)})
        elif match := ALONE.search(text):
            self.tensors.append(_row(OF_ALONE, match))
        else:
            return self._part(text)
        return True

    def shape(self, text: str) -> bool:
        """Takes the line below that of a tensor, with its shape and dtype; returns False if it is none."""
        match = SHAPE.match(text)
        if match is None or not self.tensors:
            return False
        shape = sizes(match[1])
        self.tensors[-1] |= {"shape": None if shape is None else list(shape), "dtype": dtype_name(match[2])}
        return True

    def _part(self, text: str) -> bool:
        match = PART.search(text)
        lower = text.lower()
        name = next((name for word, name in PARTS if word in lower), None)
        if match is None or name is None or not self.plans:
            return False
        self.plans[-1].setdefault(f"{name}_mb", finite(match[1]))
        if match[2]:
            self.plans[-1].setdefault(f"{name}_count", int(match[2]))
        return True


def _row(names: Sequence[str], match: re.Match[str]) -> dict[str, Any]:
    """Returns the groups of a match by name: names as texts, sizes and all else as numbers."""
    pairs = zip(names, match.groups(), strict=True)
    return {name: None if text is None else CONVERT.get(name, int)(text) for name, text in pairs}


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
