"""Builds what a OneFlow log says beside its graphs: frames of its run, and meta as JSON data."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.readers.oneflow.log.log import Log
from nbkit.readers.oneflow.log.runs import Run
from nbkit.readers.oneflow.rows.compiled import inserted
from nbkit.readers.oneflow.rows.hidden import hidden_inputs
from nbkit.readers.oneflow.text.memory import PARTS as MEMORY_PARTS
from nbkit.readers.oneflow.text.memory import UNIT
from nbkit.readers.oneflow.text.mojibake import Mojibake
from nbkit.readers.text_file import TextLines
from nbkit.schema import MEMORY_PLAN, MODULE_TENSORS, PASSES, SETTINGS

PARTS = ("total", *(name for _, name in MEMORY_PARTS))
MB = 10**6


def graph_facts(run: Run, outside: dict[str, list[str]]) -> dict[str, Any]:
    """Returns what became of one graph: sizes, and of its traced ops those kept, pruned and added by passes."""
    traced = run.traced.ops if run.traced else {}
    listed = {op.name: op for op in run.listing.ops} if run.listing else {}
    known = {
        "graph": run.label,
        "class": run.type,
        "rank": run.rank,
        "thread": run.traced.thread if run.traced else None,
        "traced": len(traced),
        "compiled": len(listed),
        "listings": run.listing.copies if run.listing else 0,
        "listed_again": run.listing.again if run.listing else 0,
        "listing_line": run.listing.line if run.listing else None,
        "not_added": [op.name for op in traced.values() if not op.is_added],
        "from_outside": outside,
        "has_modules": not run.tree.is_empty,
        "module_arguments": run.tree.arguments,
        "unused_buffers": run.unused_buffers,
    }
    return known | (_joined(run) if traced and listed else {})


def _joined(run: Run) -> dict[str, Any]:
    traced = run.traced.ops if run.traced else {}
    ops = run.listing.ops if run.listing else []
    names = {op.name for op in ops}
    pruned = Counter(op.op or op.kind for name, op in traced.items() if name not in names)
    added = Counter(inserted(op, run) or "unknown" for op in ops if op.name not in traced)
    return {
        "kept": sum(op.name in traced for op in ops),
        "pruned": dict(pruned.most_common()),
        "added": dict(added.most_common()),
        "hidden_inputs": sum(map(len, hidden_inputs(run).values())),
    }


def run_frames(log: Log, tensors: list[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    """Returns the frames module_tensors, passes, memory_plan and settings; those without a row are left out."""
    of, iterations = log.facts, log.metrics.iterations
    passes = [
        {"graph": row["graph"], "number": row["number"], "name": row["name"], "duration_us": seconds and seconds * 1e6}
        for row in of.passes
        for seconds in [row["seconds"]]
    ]
    planned = [] if iterations is None else [{"name": "iterations", "text": str(iterations), "line": None}]
    frames = {
        "module_tensors": MODULE_TENSORS.frame(tensors),
        "passes": PASSES.frame(passes),
        "memory_plan": MEMORY_PLAN.frame([*_planned(of.memory.plans), *map(_block, of.memory.blocks)]),
        "settings": SETTINGS.frame([*planned, *log.settings.rows]),
    }
    return {name: frame for name, frame in frames.items() if len(frame)}


def _planned(plans: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields rows of what each device needs, and of its parts."""
    for plan in plans:
        where = {name: plan[name] for name in ("graph", "rank", "device")}
        for kind in PARTS:
            if (size := plan.get(f"{kind}_mb")) is not None:
                yield {**where, "kind": kind, "count": plan.get(f"{kind}_count"), "size_bytes": _bytes(size)}


def _block(row: dict[str, Any]) -> dict[str, Any]:
    where = {name: row[name] for name in ("device", "chunk", "block")}
    return {**where, "kind": "block", "count": row["tensors"], "size_bytes": _bytes(row["mb"])}


def _bytes(mb: float | None) -> int | None:
    """Returns bytes; None of more than a column holds, which no device has."""
    return None if mb is None or abs(mb) * MB >= 2**62 else round(mb * MB)


def facts(log: Log, mojibake: Mojibake) -> dict[str, Any]:
    """Returns the side records of the log."""
    of = log.facts
    return {
        "stages": log.stages.seconds,
        "passes": of.passes,
        "unfinished_passes": of.unfinished(),
        "compile_seconds": of.compile_seconds,
        "sets": of.sets,
        "memory": of.memory.plans,
        "memory_blocks": of.memory.blocks,
        "memory_tensors": of.memory.tensors,
        "memory_unit": UNIT,
        "job_variables": of.job_variables,
        "actor_threads": of.actor_threads,
        "in_place": of.in_place,
        "gradient_accumulation": of.gradient_accumulation,
        "glog_lines": log.glog_lines,
        "tree_lines": {phase: dict(counts) for phase, counts in log.tree_lines.items()},
        "glog_sites": len(log.sites),
        "threads": dict(log.threads),
        "metric_events": log.metrics.events,
        "iterations": log.metrics.iterations,
        "config": log.settings.config,
        "errors": [{"line": line, "text": text[:1000]} for line, text in log.errors],
        "mojibake": {
            "count": mojibake.count,
            "repaired": mojibake.mended,
            "characters": mojibake.characters,
            "lines": mojibake.lines,
        },
    }


def notes(log: Log, mojibake: Mojibake, lines: TextLines, about: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns what a reader of the frames should know, a sentence each."""
    result = [] if lines.damage is None else [f"{lines.path.name} was not read to its end: {lines.damage}."]
    if lines.undecodable_bytes:
        result.append(f"{lines.undecodable_bytes:,} bytes could not be decoded; U+FFFD stands for them.")
    if lines.shortened:
        result.append(f"{lines.shortened:,} lines were too long to be read whole.")
    if mojibake.count:
        result.append(
            f"{mojibake.count} lines hold text of a mistaken encoding, kept as it is; "
            f"{mojibake.mended} of them could be repaired in meta['oneflow']['mojibake']."
        )
    if any(part["thread"] and not part["has_modules"] for part in about[1:]):
        result.append("Module lines name no rank: calls of modules are those of all ranks whose lines are mixed.")
    if again := sum(part["listed_again"] for part in about):
        result.append(
            f"{units.counted(again, 'line')} of operators that their listing has already count once: a module is "
            "listed twice, or lines of several ranks are mixed without a tag that tells them apart."
        )
    if log.settings.is_unreadable:
        result.append("The config file in the log is no Python that can be read: its lines are in meta['oneflow'].")
    if any(part["is_cut"] for part in log.facts.sets):
        result.append("glog cut the list of a set of ops: its last name is left out, and more may have followed.")
    if log.skipped.count > len(log.skipped.rows):
        result.append(f"{log.skipped.count:,} lines could not be read; meta['skipped_lines'] has the first ones.")
    return result
