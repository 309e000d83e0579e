"""What is told of flight recorder dumps in words and tables: whether the ranks agree, and the last call of each."""

import pandas as pd

from nbkit import units
from nbkit.schema import COLLECTIVES
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns
from nbkit.views.statements.statement import Chip, Statement, no_fault
from nbkit.views.summary.names import short_sources, shown

LAST = "rank: id, calls: count, group, call: id, last op, sizes, state, line"


def collective_statements(trace: Trace) -> list[Statement] | None:
    """Says of how many ranks and calls, and that they agree if nothing was found; null of recordings, whose rows are of
    one rank.
    """
    if trace.meta.get("verb") != "hang":
        return None
    frame = COLLECTIVES.check(trace.collectives)
    ranks = trace.meta.get("ranks", [])
    if not len(frame):
        return [Statement("", (("The dumps hold no call, so that nothing can be compared.",),))]
    groups = units.counted(int(frame["group"].nunique()), "group")
    if len(ranks) < 2 and not len(trace.findings):
        told = f"{units.counted(len(frame), 'call')} of one rank in {groups}: nothing to compare it with."
        return [Statement("", ((told, " Give the folder with the dumps of all ranks."),))]
    calls = f"{units.counted(len(frame), 'call')} of {units.counted(len(ranks), 'rank')} in {groups}"
    if len(trace.findings):
        return [Statement("What was compared", ((f"{calls} were compared.",),))]
    return no_fault(f"{calls} were compared: what more than one dump holds of a call agrees, and no rank misses one.")


def collective_chips(trace: Trace) -> list[Chip]:
    """Returns the verdict in a few words."""
    if trace.meta.get("verb") != "hang" or len(trace.meta.get("ranks", [])) < 2:
        return []
    bad = int((trace.findings["severity"] != "hint").sum())
    return [
        Chip(f"{units.counted(bad, 'finding')} in collectives", "bad") if bad else Chip("collectives agree", "good")
    ]


def collective_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the table of the last call of each rank, those first that findings name."""
    frame = COLLECTIVES.check(trace.frames.get("collectives", COLLECTIVES.frame()))
    if not len(frame):
        return []
    last = frame.groupby("rank", dropna=False, sort=True).tail(1)
    calls = frame.groupby("rank", dropna=False)["op"].size()
    lines = short_sources(["" if pd.isna(source) else source for source in last["source"]])
    rows = [
        (
            None if pd.isna(rank) else rank,
            calls.get(rank),
            *(None if pd.isna(cell) else cell for cell in (group, seq, op, shapes, state)),
            shown(line) or None,
        )
        for rank, group, seq, op, shapes, state, line in zip(
            *(last[name].tolist() for name in ("rank", "group", "seq", "op", "input_shapes", "state")),
            lines,
            strict=True,
        )
    ]
    return [Section("Last call of each rank", columns(LAST), rows[:count], and_more(len(rows), count))]
