"""Reads a OneFlow nn.Graph debug log as a trace."""

import re
from collections import deque
from pathlib import Path
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.readers.oneflow.log.log import Log
from nbkit.readers.oneflow.log.modules import module_rows, tensor_rows
from nbkit.readers.oneflow.log.runs import Run, runs
from nbkit.readers.oneflow.log.stream import Stream
from nbkit.readers.oneflow.log.tree_lines import is_of_tree
from nbkit.readers.oneflow.meta import facts, graph_facts, notes, run_frames
from nbkit.readers.oneflow.names import is_from_outside
from nbkit.readers.oneflow.rows.compiled import write_compiled
from nbkit.readers.oneflow.rows.traced import write_traced
from nbkit.readers.oneflow.text.lines import Cleaner
from nbkit.readers.oneflow.text.mojibake import Mojibake
from nbkit.readers.reader import Reader
from nbkit.readers.text_file import TextLines, text_lines
from nbkit.schema import METRICS, MODULES
from nbkit.trace.trace import Trace

MARKS = re.compile(r"Lazy nn\.Graph name|^[^(\n]{0,120}\((?:OPERATOR: ?|GRAPH:)", re.MULTILINE)


def looks_like(head: str) -> bool:
    """Returns whether the first lines of a text are those of such a log; it may begin with other output."""
    return MARKS.search(head) is not None


def read_oneflow_log(path: Path) -> Trace:
    """Returns the log's graphs (nodes, edges, graph_tensors, modules), its run (metrics, passes ...), the rest in meta.

    Each nn.Graph has two graphs: "NAME traced", the ops that the user's code and autograd added, and "NAME compiled",
    what the compiler passes made of them. Lines that cannot be read are in meta["skipped_lines"]. Raises
    TraceError if the file itself cannot be read.
    """
    lines, mojibake = text_lines(path), Mojibake()
    log = _read(lines, mojibake)
    rows, modules, tensors, about = GraphRows(), [], [], []
    unwritten = deque(runs(log.graphs))
    log.graphs.clear()
    while unwritten:
        run = unwritten.popleft()  # what was written is not held twice
        _mark_lost(log, run)
        left_out = _leave_out_damaged(run)
        about.append({**graph_facts(run, _write(rows, run)), "left_out": left_out})
        modules += module_rows(run.label, run.tree, _fixed(run))
        tensors += tensor_rows(run.label, run.name, run.tree)
    run_rows = {"modules": MODULES.frame(modules), "metrics": METRICS.frame(log.metrics.rows)}
    frames = {**rows.frames(), **run_rows, **run_frames(log, tensors)}
    return Trace(frames, _meta(lines, log, mojibake, about, rows.notes(is_from_outside)))


def _read(lines: TextLines, mojibake: Mojibake) -> Log:
    log, cleaner = Log(), Cleaner(text_lines(lines.path))
    untagged = tagged = Stream(log, None)
    streams: dict[str | None, Stream] = {None: untagged}
    for number, raw in enumerate(lines, 1):
        if not raw.isascii():
            mojibake.see(number, raw)
        # Nine of ten lines are fields of a message, and nothing with a prefix is taken for one.
        if untagged.field is not None and untagged.field(raw.strip()):
            continue
        log.settings.see(number, raw)
        rank, line = cleaner.clean(raw)
        # A tag may stand before the first line of what was printed at once.
        stream = tagged if rank is None and tagged.is_listing else streams.get(rank)
        if stream is None:
            stream = streams[rank] = Stream(log, rank)
        if rank is not None:
            tagged = stream
        if not stream.take(number, line):
            if (rest := cleaner.learn(line)) is not None:
                stream.take(number, rest)
            elif is_of_tree(line):
                log.skipped.add(number, line, "a line of a graph without the word that says which")
    for stream in streams.values():
        stream.close()
    log.settings.close()
    return log


def _mark_lost(log: Log, run: Run) -> None:
    """Marks ops that have lost their text where ops are printed whole; a free tensor never has one."""
    ops = list(run.traced.ops.values()) if run.traced else []
    if any(op.has_text for op in ops):
        for op in ops:
            if not op.has_text and op.kind != "constant":
                op.is_damaged = True
                log.skipped.add(op.line, op.name, "an op whose text is lost")


def _leave_out_damaged(run: Run) -> list[str]:
    """Leaves out ops that are not whole, unless a line says that the graph has them; returns the names left out."""
    ops = run.traced.ops if run.traced else {}
    names = [op.name for op in ops.values() if op.is_damaged and not op.is_added]
    for name in names:
        del ops[name]
    return names


def _fixed(run: Run) -> set[str]:
    """Returns names of the variables that are not to be trained."""
    ops = run.traced.ops.values() if run.traced else ()
    return {op.name for op in ops if op.attributes.get("trainable") is False}


def _write(rows: GraphRows, run: Run) -> dict[str, list[str]]:
    """Writes both graphs of a run; returns the tensors that come from outside, by graph."""
    outside = {}
    if run.traced is not None:
        outside["traced"] = write_traced(rows, run, run.traced)
    if run.listing is not None:
        outside["compiled"] = write_compiled(rows, run, run.listing)
    return outside


def _meta(
    lines: TextLines, log: Log, mojibake: Mojibake, about: list[dict[str, Any]], more: list[str]
) -> dict[str, Any]:
    line, text = log.errors[0] if log.errors else (None, None)
    error = None if text is None else {"type": "error", "message": text, "source": f"line {line}"}
    return {
        "verb": "opgraph",
        "name": lines.path.name,
        "created": log.created,
        "source": "OneFlow nn.Graph log",
        "complete": error is None and lines.damage is None and not log.is_cut,
        "error": error,
        "skipped": {},
        "skipped_lines": log.skipped.rows,
        "notes": [*notes(log, mojibake, lines, about), *more],
        "oneflow": {"graphs": about, **facts(log, mojibake), "undecodable_bytes": lines.undecodable_bytes},
    }


ONEFLOW = Reader("a OneFlow nn.Graph log", read_oneflow_log, of_text=looks_like)
