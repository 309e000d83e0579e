"""Defines a device by what bounds an op on it: arithmetic, memory, launching, links to other devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any

import pandas as pd

from nbkit.errors import OptionError
from nbkit.schema import table

# What was measured on a device, call by call; see MeasuredCalls.
CALLS = table(
    "calls",
    "measured call of an aten op",
    ("op", "str", "name without overload, such as aten.mm, or with one that takes otherwise long"),
    ("dtype", "str", "dtype of its tensors, without prefix"),
    ("flops", "int64", "2 x multiply-adds of its products, as in costs"),
    ("moved_bytes", "int64", "bytes read and written, as in costs"),
    ("time_us", "float64", "shortest time of a call from Python without gradients"),
)


@dataclass(frozen=True, eq=False)
class Device:
    """Holds what a device does at best, in FLOP/s (2 x multiply-adds), bytes/s and microseconds.

    Args:
        name: what it is called where it is shown.
        flops_per_s: peak by dtype (float32, tf32, bfloat16, float16, float8, int8, float64): matrix products of dense
            matrices; float32 is also what elementwise ops do.
        bytes_per_s: bandwidth of its memory.
        launch_us: time from launching an op to launching the next at the earliest.
        phase_launch_us: the same by phase (forward, backward, optimizer, other), where they differ.
        memory_bytes: size of its memory, if known.
        link_bytes_per_s: what one device sends to others at once, in one direction, if known.
        cold_us: pairs, in ascending order, of bytes that an op moved and the time that the next one takes longer, since
            what it needs has left the caches; where launching and computing add up.
        is_queued: whether launching goes on while the device computes, as on a GPU; on a CPU the two add up.
        calls: frame of calls that were measured (columns op, dtype, flops, moved_bytes, time_us); None for peaks alone.

    Raises:
        OptionError: for a rate or a time that is no number above 0.
    """

    name: str
    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    launch_us: float
    phase_launch_us: Mapping[str, float] = field(default_factory=dict)
    memory_bytes: int | None = None
    link_bytes_per_s: float | None = None
    is_queued: bool = True
    cold_us: Sequence[Sequence[float]] = ()
    calls: pd.DataFrame | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.flops_per_s:
            raise OptionError(f"{self.name!r} has no FLOP/s; give those of one dtype at least, such as float32.")
        numbers: dict[str, Any] = {f"flops_per_s[{name!r}]": value for name, value in self.flops_per_s.items()}
        numbers |= {"bytes_per_s": self.bytes_per_s, "launch_us": self.launch_us}
        numbers |= {f"phase_launch_us[{name!r}]": value for name, value in self.phase_launch_us.items()}
        for name in ("memory_bytes", "link_bytes_per_s"):
            if getattr(self, name) is not None:
                numbers[name] = getattr(self, name)
        for name, value in numbers.items():
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < inf:
                raise OptionError(f"{name}={value!r} of {self.name!r} is no finite number above 0; give one.")
        _check_pairs(self.cold_us, self.name)
        if self.calls is not None:
            CALLS.check(self.calls)

    def peaks(self) -> dict[str, Any]:
        """Returns all but the measured calls, as JSON data."""
        held = {of.name: getattr(self, of.name) for of in fields(self) if of.name != "calls"}
        pairs = [list(pair) for pair in self.cold_us]
        return held | {
            "flops_per_s": dict(self.flops_per_s), "phase_launch_us": dict(self.phase_launch_us), "cold_us": pairs
        }  # fmt: skip

    def peak(self, dtype: str | None) -> float:
        """Returns the FLOP/s in a dtype; those of float32, in which others compute, where that has none."""
        wanted = dtype.partition("_")[0] if dtype else "float32"
        return float(self.flops_per_s.get(wanted) or self.flops_per_s.get("float32") or max(self.flops_per_s.values()))


def _check_pairs(pairs: Any, device: str) -> None:
    """Raises OptionError unless these are pairs of numbers from 0 up, the first of each larger than that before."""
    try:
        first = [float(moved) for moved, _ in pairs]
        is_right = all(0 <= float(number) < inf for pair in pairs for number in pair) and first == sorted(set(first))
    except (TypeError, ValueError):
        is_right = False
    if not is_right:
        raise OptionError(
            f"cold_us={pairs!r} of {device!r} are no pairs of bytes, in ascending order, and microseconds; give pairs "
            "such as [(1e6, 0.5), (1e7, 5.0)]."
        )
