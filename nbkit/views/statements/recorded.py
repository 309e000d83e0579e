"""What a brief says of a trace that judges nothing: how many ops ran, in how many modules, of how many parameters."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.schema import MODULES, NODES, OPS
from nbkit.trace.trace import Trace
from nbkit.views.statements.run import run_statements
from nbkit.views.statements.statement import Words
from nbkit.views.summary.counting import counted_ops
from nbkit.views.summary.facts import is_module_tree
from nbkit.views.summary.names import shown


def recorded_words(trace: Trace) -> list[Words]:
    """Returns sentences on the run of a dump and what it, or a recording, holds; none without ops and nodes."""
    saved = trace.meta.get("captured_calls")
    parts = [*_counts(trace)]
    if saved is not None and trace.meta.get("verb") == "opcapture":
        where = f" to {shown(str(trace.meta['folder']))}" if trace.meta.get("folder") else ""
        size = units.data_size(trace.meta["captured_bytes"]) if trace.meta.get("captured_bytes") else ""
        parts = [f"{units.counted(int(saved), 'call')} saved{where}{f' ({size})' if size else ''}"]
    run = [words for one in run_statements(trace) if one.is_first for words in one.sentences]
    return [*run, *([(f"{', '.join(parts)}.",)] if parts else []), *_unread(trace)]


def _unread(trace: Trace) -> list[Words]:
    """Says which lines of a dump could not be read."""
    lines = trace.meta.get("skipped_lines") or [] if "nodes" in trace.frames else []
    if not lines:
        return []
    first = f"line {units.count(lines[0].get('line'))}: {shown(str(lines[0].get('reason') or ''))}"
    which = first if len(lines) == 1 else f"the first is {first}"
    return [(f"{units.counted(len(lines), 'line')} could not be read, {which}.",)]


def _counts(trace: Trace) -> Iterator[str]:
    ops, nodes = (trace.frames.get(table.name, table.frame()) for table in (OPS, NODES))
    modules = trace.frames.get("modules", MODULES.frame())
    of_modules = [units.counted(len(modules), "module")] if len(modules) else []
    if len(ops):
        # Of a timeline, whose rows are of many kinds, too.
        aten = int((ops["level"] == "aten").sum())
        counted = units.counted(aten, "op") if aten else units.counted(len(counted_ops(ops)[0]), "call")
        yield " in ".join([counted, *of_modules])
    elif len(nodes):
        yield _of_graph(nodes, of_modules)
    else:
        return
    params = modules.loc[modules["depth"] == 0, "params"].dropna()
    if len(params):
        yield units.counted(int(params.sum()), "parameter")


def _of_graph(nodes: pd.DataFrame, of_modules: list[str]) -> str:
    graphs, ops = nodes["graph"].nunique(), int((nodes["kind"] == "op").sum())
    if is_module_tree(nodes):
        return of_modules[0] if of_modules else units.counted(int((nodes["kind"] == "module").sum()), "module")
    several = [units.counted(graphs, "graph")] if graphs > 1 else []
    return " in ".join([units.counted(ops, "op"), *(of_modules or several)])
