"""Reads a plan's memory: what each device needs, its blocks, at level 3 every tensor in them. Units are 10^6 bytes."""

import math
import re
from typing import Any

from nbkit.readers.oneflow.dtypes import dtype_name
from nbkit.readers.oneflow.text.operator_line import sizes

WHOLE = r"(-?\d{1,15})"
MIB = r"\[ ?([^\s\[\]]{1,40}) MiB ?\]"
PLACE = rf"Rank: ?{WHOLE} ?, Device: ?{WHOLE}"
PLAN = re.compile(
    rf"(?:Graph name (\S+) in {PLACE} needs to allocate|(?:Plan:|Graph name) (\S+) needs to allocate) {MIB}"
    rf"(?:.{{0,80}}?{PLACE})?"
)
PART = re.compile(rf"{MIB}(?:.{{0,40}}?(?:mem_block_num|num) ?= ?(\d{{1,15}}))?")
PARTS = (("chunk", "chunk"), ("unreused", "unreused"), ("eager variable", "eager_variables"))
BLOCK = re.compile(
    rf"In Device: {WHOLE} Chunk id: {WHOLE} MemBlock id: {WHOLE} has num = {WHOLE} tensors? with mem size = (\S+)"
)
IN_CHUNK = re.compile(
    rf"In Chunk id: {WHOLE}(?:, MemBlock id: {WHOLE})? Order: {WHOLE} ?,duration: {WHOLE} ?,"
    r"size: (\S+) MiB, name: (\S+)"
)
ALONE = re.compile(rf"In Device: {WHOLE} Memblock id: {WHOLE}\s+(\w+)\s+size: (\S+) MiB, name: (\S+)")
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
        return self._block(text) or self._plan(text) or self._tensor(text) or self._part(text)

    def shape(self, text: str) -> bool:
        """Takes the line below that of a tensor, with its shape and dtype; returns False if it is none."""
        match = SHAPE.match(text)
        if match is None or not self.tensors:
            return False
        shape = sizes(match[1])
        self.tensors[-1] |= {"shape": None if shape is None else list(shape), "dtype": dtype_name(match[2])}
        return True

    def _block(self, text: str) -> bool:
        match = BLOCK.search(text)
        if match is None:
            return False
        device, chunk, block, tensors = map(int, match.groups()[:4])
        row = {"device": device, "chunk": chunk, "block": block, "tensors": tensors}
        self.blocks.append({**row, "mb": finite(match[5])})
        return True

    def _plan(self, text: str) -> bool:
        match = PLAN.search(text)
        if match is None:
            return False
        graph, rank, device, plan, size, plan_rank, plan_device = match.groups()
        where = {"rank": _int(rank or plan_rank), "device": _int(device or plan_device)}
        self.plans.append({"graph": graph or plan, **where, "total_mb": finite(size)})
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

    def _tensor(self, text: str) -> bool:
        if match := IN_CHUNK.search(text):
            chunk, block, order, duration = map(_int, match.groups()[:4])
            where = {"kind": "chunk", "chunk": chunk, "block": block, "order": order, "duration": duration}
            self.tensors.append({"tensor": match[6], "mb": finite(match[5]), **where})
        elif match := ALONE.search(text):
            where = {"kind": match[3], "device": int(match[1]), "block": int(match[2])}
            self.tensors.append({"tensor": match[5], "mb": finite(match[4]), **where})
        return match is not None


def finite(text: str) -> float | None:
    """Returns the number that a text says; None if it says none, or one that JSON does not have."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
