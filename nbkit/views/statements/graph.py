"""What a report says of a graph in words: what it is, what it is made of, and what of its source could not be read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.schema import CORRESPONDENCE, NODES, PARTS
from nbkit.trace.trace import Trace
from nbkit.views.sections.graph.correspondence import LEVELS, counted_actions
from nbkit.views.statements.run import run_statements
from nbkit.views.statements.statement import Statement
from nbkit.views.summary.names import shown

MOST = 8
MOST_SKIPPED = 3


def graph_statements(trace: Trace) -> list[Statement]:
    """Returns the statements of a graph, most asked first."""
    nodes = NODES.check(trace.frames["nodes"])
    parts = PARTS.check(trace.frames.get("parts", PARTS.frame()))
    ops = nodes[nodes["kind"] == "op"]
    statements = [
        *run_statements(trace),
        Statement("What it is", tuple((text,) for text in _graphs(trace.meta, nodes)), is_first=True),
        Statement("What corresponds", tuple((text,) for text in _compared(trace))),
        replace(_counts("What it is made of", parts["role"], "part"), is_first=True),
        _counts("Which ops", ops["op"], "op"),
        _counts("Which phases", nodes["phase"], "node"),
        _counts("What was inserted", nodes["inserted"], "node"),
        _counts("SBP of results", nodes["sbp"], "node"),
        skipped_statement(trace.meta),
    ]
    return [statement for statement in statements if statement.sentences]


def skipped_statement(meta: Mapping[str, Any]) -> Statement:
    """Returns what of the source could not be read, the first lines by their number."""
    skipped = meta.get("skipped_lines") or []
    if not skipped:
        read = (("All of the source was read.",),) if meta.get("source") else ()
        return Statement("Is anything wrong", read, is_first=True)
    few = [
        f"line {units.count(row.get('line'))}: {shown(str(row.get('reason') or ''))}" for row in skipped[:MOST_SKIPPED]
    ]
    count = f"{units.counted(len(skipped), 'line')} could not be read; trace.meta['skipped_lines'] has them all."
    return Statement("Is anything wrong", tuple((text,) for text in (count, *few)), "bad", is_first=True)


def _graphs(meta: Mapping[str, Any], nodes: pd.DataFrame) -> Iterator[str]:
    source = meta.get("source")
    if source:
        yield f"Read from: {shown(str(source))}."
    graphs = list(nodes.groupby("graph", sort=False)["kind"])
    for graph, kinds in graphs[:MOST]:
        yield f"{shown(str(graph))}: {units.counted(len(kinds), 'node')}{_kinds(kinds)}."
    if len(graphs) > MOST:
        yield f"And {units.counted(len(graphs) - MOST, 'more graph')}."


def _compared(trace: Trace) -> Iterator[str]:
    """Yields what of two graphs is the same, and what only one of them has; nothing of a single graph."""
    rows = CORRESPONDENCE.check(trace.frames.get("correspondence", CORRESPONDENCE.frame()))
    changed = rows[(rows["action"] == "match") & (rows["relation"] != "same")]
    counts = counted_actions(rows, "level")
    for level in filter(counts.index.__contains__, LEVELS):
        both, left, right = map(units.count, counts.loc[level])
        relations = changed.loc[changed["level"] == level, "relation"].value_counts()
        text = f" ({_listed(relations, MOST)})" if len(relations) else ""
        yield f"{LEVELS[level].capitalize()}: {both} on both sides{text}, {left} left only, {right} right only."


def _kinds(kinds: pd.Series) -> str:
    counts = kinds.value_counts()
    return f" ({_listed(counts, 6)})" if len(counts) else ""


def _counts(question: str, names: pd.Series, noun: str) -> Statement:
    """Returns how many there are of each name; no sentence where there is none."""
    counts = names.value_counts()
    if not len(counts):
        return Statement(question, ())
    unnamed = len(names) - int(counts.sum())
    rest = f"; {units.counted(unnamed, noun)} without one" if unnamed and noun == "part" else ""
    return Statement(question, ((f"{_listed(counts, MOST)}{rest}.",),))


def _listed(counts: "pd.Series[int]", most: int) -> str:
    """Lists counts: 'mm 12, add 3, 4 others'."""
    names: Sequence[str] = [f"{shown(str(name))} {units.count(number)}" for name, number in counts.head(most).items()]
    rest = len(counts) - len(names)
    return ", ".join([*names, *([units.counted(rest, "other")] if rest else [])])
