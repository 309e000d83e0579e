"""The tables of the run behind a dump: memory that its plan needs, compiler passes, settings, ranks."""

import pandas as pd

from nbkit.schema import MEMORY_PLAN, NODES, PASSES, SETTINGS, Table
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns, rows_of

# Numbers and words; what is longer stands behind them.
SHORT = r"[\w.+-]{1,24}"
SPREAD = {"sbp": "SBP of results", "device": "Placements", "mesh": "Meshes"}


def frame_in(trace: Trace, table: Table) -> pd.DataFrame:
    """Returns a frame of a trace, without rows where it has none."""
    return table.check(trace.frames.get(table.name, table.frame()))


def run_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables that have rows, of `count` rows at most; none of two graphs that are compared."""
    if "correspondence" in trace.frames:
        return []
    nodes, plan, passes, settings = (frame_in(trace, table) for table in (NODES, MEMORY_PLAN, PASSES, SETTINGS))
    slowest = passes.sort_values("duration_us", ascending=False, kind="stable")
    is_long = ~settings["text"].str.fullmatch(SHORT).fillna(False).astype(bool)
    short_first = settings.loc[is_long.sort_values(kind="stable").index]
    moves = nodes[nodes["ring"].notna()].groupby(["op", "ring", "peer"], dropna=False, sort=False).size()
    # Devices of other graphs are told elsewhere.
    spread = [name for name in SPREAD if nodes["sbp"].notna().any() or name == "mesh"]
    of_plan = "graph, rank: id, device: id, planned memory, size: bytes, blocks: count"
    of_moves = "communication, ring: id, rank in it: id, ops: count"
    tables = [
        ("Memory plan", of_plan, plan[plan["kind"] != "block"], "graph, rank, device, kind, size_bytes, count"),
        ("Compiler passes", "compiler pass, time: time", slowest, "name, duration_us"),
        ("Settings", "setting, value, line: id", short_first, "name, text, line"),
        ("Communication", of_moves, moves.reset_index(name="count"), "op, ring, peer, count"),
        *(
            (SPREAD[name], f"{name}, nodes: count", nodes[name].value_counts().reset_index(), f"{name}, count")
            for name in spread
        ),
    ]
    return [
        Section(title, columns(labels), rows_of(rows.head(count), names), and_more(len(rows), count))
        for title, labels, rows, names in tables
        if len(rows)
    ]
