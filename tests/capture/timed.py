"""Defines what the tests of optime share: recorded runs, and the same step under torch's own profiler."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
from torch.profiler import ProfilerActivity, profile

import nbkit
from nbkit import Trace
from nbkit.compat.torch_versions import NAMES_OVERLOADS


def timed(step: Callable[[], Any], **options: Any) -> Trace:
    """Returns the optime trace of one run of `step`."""
    with nbkit.optime(**options) as trace:
        step()
    return trace


def profiler_counts(step: Callable[[], Any]) -> Counter[str]:
    """Counts how often torch.profiler sees each dispatcher call of `step`, by name without overload: aten.mm.

    Its own results are counted: `events()` leaves out an event whose only child has the same name.
    """
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    names = (event.name() for event in profiler.profiler.kineto_results.events())
    return Counter(name.replace("::", ".") for name in names if name.startswith("aten::"))


def recorded_counts(trace: Trace) -> Counter[str]:
    """Counts how often `ops` holds each dispatcher call, by name without overload."""
    names = trace.ops.loc[trace.ops["level"] == "aten", "op"]
    return Counter(".".join(name.split(".")[:2]) for name in names)


def level(trace: Trace, name: str) -> pd.DataFrame:
    """Returns the rows of one level."""
    return trace.ops[trace.ops["level"] == name]


def named(trace: Trace, op: str) -> pd.DataFrame:
    """Returns the rows of one op."""
    return trace.ops[trace.ops["op"] == timed_name(op)]


def timed_name(op: str) -> str:
    """Returns what optime calls the op `aten.mm.default`: torch 2.6 does not tell it the overload."""
    is_dispatched = op.startswith(("aten.", "c10d.")) and not NAMES_OVERLOADS
    return op.rpartition(".")[0] if is_dispatched else op
