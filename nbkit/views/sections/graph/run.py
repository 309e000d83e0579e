"""The tables of the run behind a dump: memory that its plan needs, compiler passes, settings, ranks."""

import pandas as pd

from nbkit.schema import MEMORY_PLAN, NODES, PASSES, SETTINGS, Table
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns, rows_of

# Numbers and words; what is longer stands behind them.
SHORT = r"[\w.+-]{1,24}"


def run_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables that have rows, of `count` rows at most; none of two graphs that are compared."""
    if "correspondence" in trace.frames:
        return []
    nodes = _frame(trace, NODES)
    sections = [
        _memory(_frame(trace, MEMORY_PLAN), count),
        _passes(_frame(trace, PASSES), count),
        _settings(_frame(trace, SETTINGS), count),
        _communication(nodes[nodes["ring"].notna()], count),
        *(
            _spread(nodes, *of, count)
            for of in (("sbp", "SBP of results"), ("device", "Placements"), ("mesh", "Meshes"))
        ),
    ]
    return [section for section in sections if section.rows]


def _frame(trace: Trace, table: Table) -> pd.DataFrame:
    return table.check(trace.frames.get(table.name, table.frame()))


def _memory(plan: pd.DataFrame, count: int) -> Section:
    """Returns what each device is to allocate, and the parts of that."""
    parts = plan[plan["kind"] != "block"]
    rows = parts.head(count)
    kinds = columns("graph, rank: id, device: id, planned memory, size: bytes, blocks: count")
    return Section(
        "Memory plan", kinds, rows_of(rows, "graph, rank, device, kind, size_bytes, count"), and_more(len(parts), count)
    )


def _passes(passes: pd.DataFrame, count: int) -> Section:
    slowest = passes.sort_values("duration_us", ascending=False, kind="stable")
    rows = rows_of(slowest.head(count), "name, duration_us")
    return Section("Compiler passes", columns("compiler pass, time: time"), rows, and_more(len(passes), count))


def _settings(settings: pd.DataFrame, count: int) -> Section:
    is_long = ~settings["text"].str.fullmatch(SHORT).fillna(False).astype(bool)
    rows = rows_of(settings.loc[is_long.sort_values(kind="stable").index].head(count), "name, text, line")
    return Section("Settings", columns("setting, value, line: id"), rows, and_more(len(settings), count))


def _communication(nodes: pd.DataFrame, count: int) -> Section:
    """Returns for each op, ring and peer how many there are."""
    groups = nodes.groupby(["op", "ring", "peer"], dropna=False, sort=False).size().reset_index(name="count")
    rows = rows_of(groups.head(count), "op, ring, peer, count")
    kinds = columns("communication, ring: id, rank in it: id, ops: count")
    return Section("Communication", kinds, rows, and_more(len(groups), count))


def _spread(nodes: pd.DataFrame, column: str, title: str, count: int) -> Section:
    """Returns the nodes of each SBP, mesh, or placement; devices of graphs without any are told elsewhere."""
    is_spread = nodes["sbp"].notna().any()
    counts = nodes[column].value_counts() if is_spread or column == "mesh" else pd.Series(dtype="int64")
    return Section(
        title, columns(f"{column}, nodes: count"), list(counts.head(count).items()), and_more(len(counts), count)
    )
