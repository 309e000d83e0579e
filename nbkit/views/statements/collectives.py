"""Says in words what a process asked of the others in a step: how many collectives, their bytes, how long it waited."""

import pandas as pd

from nbkit import units
from nbkit.schema import COLLECTIVES
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Statement, Words, op_link
from nbkit.views.summary.names import ROOT, shown


def collective_statements(trace: Trace) -> list[Statement] | None:
    """Says what the process of a recorded step asked of the others; null for what has not recorded one such process."""
    if "ops" not in trace.frames:
        return None
    calls = COLLECTIVES.check(trace.frames["collectives"])
    if not len(calls) or calls["rank"].nunique() > 1:
        return None
    return [Statement("", ((_asked(calls), *_waited(calls, trace.meta.get("wall_us")), "."),))]


def _asked(calls: pd.DataFrame) -> str:
    """Writes how many calls there are in how many groups, and the bytes that they take from this process."""
    sent = int(calls["is_p2p"].sum())
    counts = [(len(calls) - sent, "collective"), (sent, "send or receive")]
    named = " and ".join(units.counted(count, noun) for count, noun in counts if count)
    named = named.replace("send or receives", "sends and receives")
    groups = len(calls[["group", "group_ranks"]].dropna(how="all").drop_duplicates())
    size = calls["size_bytes"]
    # A barrier moves nothing.
    least = "at least " if (size.isna() & calls["op"].ne("barrier")).any() else ""
    moved = f" moved {least}{units.data_size(float(size.sum()))}" if size.notna().any() else ""
    of = f" of {units.counted(groups, 'group')}" if groups else ""
    return f"{named}{of}{moved or ' ran'}"


def _waited(calls: pd.DataFrame, wall_us: float | None) -> Words:
    """Writes how long the step waited for them, and for which the longest."""
    waits = calls["wait_us"]
    if waits.isna().all():
        return ("; how long the step waited for them is not known",)
    least = "at least " if waits.isna().any() else ""
    of = f" of {units.duration(wall_us)}" if wall_us else ""
    told = f"; the step waited {least}{units.duration(float(waits.sum()))}{of} for them"
    longest = calls.loc[waits.idxmax()]
    if pd.isna(longest["op_id"]) or waits.notna().sum() < 2:
        return (told,)
    where = "" if pd.isna(longest["module"]) else f" in {shown(str(longest['module'])) or ROOT}"
    name = f"{shown(str(longest['op']))}{where}"
    return (f"{told}, {units.duration(float(longest['wait_us']))} of it for ", op_link(name, int(longest["op_id"])))
