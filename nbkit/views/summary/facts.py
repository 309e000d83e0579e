"""Facts state what every view says about a trace as a whole; text, HTML, page and widget word it the same."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import self_by_phase
from nbkit.errors import nbkit_failed, please_report
from nbkit.findings.steps.anomalies import LOSS_NOT_FINITE
from nbkit.schema import MODULES, OPS
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace
from nbkit.views.summary.counting import counted_ops, is_timeline, phases_us
from nbkit.views.summary.names import shown

# What the rows of each level are, one and several, in the order in which they are told.
LEVEL_NOUNS = {
    "aten": ("aten op", "aten ops"),
    "module": ("module call", "module calls"),
    "range": ("named range", "named ranges"),
    "api": ("API call", "API calls"),
    "runtime": ("driver call", "driver calls"),
    "kernel": ("kernel", "kernels"),
}
# Frames of traces that need not have ops.
WITHOUT_OPS = ("nodes", "stacks", "results", "ranks", "collectives")
# How the notes begin that say what a verb leaves out of every step; widgets/src/shared/header.js has it, too.
SKIPPED = "skipped "
AUTOGRAD = r"^autograd::|Backward\d*$|AccumulateGrad$"
PHASE_COLORS = {"forward": "#3b82f6", "backward": "#d97706", "optimizer": "#16a34a", "other": "#808080"}


def phase_color(phase: str) -> str:
    """Returns the color of a phase; that of "other" for one we do not know."""
    return PHASE_COLORS.get(phase, PHASE_COLORS["other"])


@dataclass(frozen=True)
class Facts:
    """The header of a view: title, why it is incomplete (null if it is not), figures by label, phases and notes.

    `counted` names the rows of `ops` that the phases count.
    """

    title: str
    incomplete: str | None
    figures: tuple[tuple[str, str], ...]
    phases: pd.DataFrame
    counted: str
    notes: tuple[str, ...]


@once_per_view
def facts(trace: Trace) -> Facts:
    """Returns the facts of a trace; those its meta does not hold are left out."""
    meta, ops = trace.meta, trace.frames.get("ops", OPS.frame())
    name = str(meta.get("name") or "")
    counted, counted_name = counted_ops(ops)
    verb, is_graph = str(meta.get("verb") or "trace"), "nodes" in trace.frames
    return Facts(
        title=shown(f"{verb} {name}" if name and name != verb else verb),
        incomplete=None if trace.complete else _stopped_cost(trace) or _why_incomplete(meta.get("error"), is_graph),
        figures=(
            *(figure for name, figures in COUNTED.items() if name in trace.frames for figure in figures(trace)),
            *_figures(meta, None if _is_without_ops(trace, ops) else ops),
        ),
        phases=_phases(trace, counted),
        counted=counted_name,
        notes=tuple(_notes(meta)),
    )


def _is_without_ops(trace: Trace, ops: pd.DataFrame) -> bool:
    """Returns whether a trace is not of ops; nodes that stand as ops in a table are none."""
    return "node_costs" in trace.frames or (any(name in trace.frames for name in WITHOUT_OPS) and not len(ops))


def figure_text(label: str, value: str) -> str:
    """Returns '3 steps', or 'torch 2.13'."""
    return f"{value} {label}" if value.replace(",", "").isdigit() else f"{label} {value}"


def _phases(trace: Trace, counted: pd.DataFrame) -> pd.DataFrame:
    phases = self_by_phase(counted)
    known = phases["phase"].map(phases_us(trace) if trace.meta.get("step") else {})
    return phases.assign(self_time_us=known.astype("Float64").fillna(phases["self_time_us"]).astype(float))


def _graph_counts(trace: Trace) -> list[tuple[str, str]]:
    """Counts graphs, nodes and edges."""
    nodes, edges = trace.nodes, trace.frames.get("edges")
    if is_module_tree(nodes) and "correspondence" not in trace.frames:
        return _tree_counts(trace)
    counts = {"graph": nodes["graph"].nunique(), "node": len(nodes), "edge": 0 if edges is None else len(edges)}
    return [_counted(*count) for count in counts.items()]


def _counted(noun: str, number: int) -> tuple[str, str]:
    return f"{noun}{'' if number == 1 else 's'}", units.count(number)


def _allocations(trace: Trace) -> list[tuple[str, str]]:
    """Counts the events of a memory snapshot."""
    count = int((trace.memory["delta_bytes"] > 0).sum())
    return [_counted("allocation", count), _counted("free", len(trace.memory) - count)]


def _aligned(trace: Trace) -> list[tuple[str, str]]:
    """Counts the results of two executions."""
    counts = trace.frames["results"]["side"].value_counts()
    return [(f"{side} results", units.count(counts.get(side, 0))) for side in ("left", "right")]


def _dumped(trace: Trace) -> list[tuple[str, str]]:
    """Counts the calls of collectives in flight recorder dumps, which have nothing else."""
    if "ops" in trace.frames:
        return []
    return [_counted("call", len(trace.collectives)), _counted("rank", len(trace.meta.get("ranks", [])))]


def is_module_tree(nodes: pd.DataFrame) -> bool:
    """Returns whether nodes are those of modules and what they hold, without an op that is computed."""
    return bool((nodes["kind"] == "module").any() and not (nodes["kind"] == "op").any())


def _tree_counts(trace: Trace) -> list[tuple[str, str]]:
    """Counts modules and parameters, each once: one that stands in several places says so of all but the first."""
    modules = trace.frames.get("modules", MODULES.frame())
    again = trace.nodes["attributes"].str.contains('"same_as"', na=False)
    number = int(((trace.nodes["kind"] == "module") & ~again).sum())
    root = modules[modules["module"] == ""]
    figures = [_counted("module", number)]
    if len(root) == 1:
        params, size_bytes = root["params"].iloc[0], root["param_bytes"].iloc[0]
        figures.append(("parameters", f"{units.count(params)} ({units.data_size(size_bytes)})"))
    return figures


def _watched(trace: Trace) -> list[tuple[str, str]]:
    """Counts the steps of a script that were watched, and tells how their loss went."""
    went = [("loss", losses)] if (losses := _losses(trace.steps)) else []
    audits = [one for one in trace.meta.get("recordings", []) if one.get("verb") == "opaudit"]
    recorded = Counter(number for one in audits for number in one["steps"])
    names = [f"{number}{f' ({times} times)' if times > 1 else ''}" for number, times in sorted(recorded.items())]
    deep = [("looked into", f"step{'s' if len(names) > 1 else ''} {', '.join(names)}")] if names else []
    return [_counted("step", len(trace.steps)), *went, *deep]


def _losses(steps: pd.DataFrame) -> str | None:
    """Says how the loss went: where it is NaN or Inf in the end, from which step on; a null is a step without."""
    begins = steps.index[steps["anomaly"] == LOSS_NOT_FINITE]
    is_lost = len(begins) > 0 and not np.isfinite(steps["loss"].loc[begins[-1] :]).any()
    finite = steps["loss"].loc[: begins[-1] - 1] if is_lost else steps["loss"]
    losses = finite[np.isfinite(finite)] if is_lost else finite.dropna()
    if not is_lost:
        return f"{losses.iloc[0]:.3g} at first, {losses.iloc[-1]:.3g} at last" if len(losses) > 1 else None
    value = "NaN" if np.isnan(steps["loss"].iloc[-1]) else "Inf"
    went = [f"{losses.iloc[0]:.3g} at first"] if len(losses) else []
    went += [f"{losses.iloc[-1]:.3g} in step {steps['step'].loc[losses.index[-1]]}"] if len(losses) > 1 else []
    since = f"from step {steps['step'].loc[begins[-1]]} on" if begins[-1] < steps.index[-1] else "the last step"
    return ", ".join([*went, f"{value} at last ({since})"])


def _ranks(trace: Trace) -> list[tuple[str, str]]:
    """Counts the ranks of a job, and their ops."""
    ops = trace.frames["ranks"]["rows"].dropna()
    return [_counted("rank", len(trace.frames["ranks"])), *([_counted("op", int(ops.sum()))] if len(ops) else [])]


# What is counted of a trace with such a frame, before what all have.
COUNTED: dict[str, Callable[[Trace], list[tuple[str, str]]]] = {
    "nodes": _graph_counts,
    "steps": _watched,
    "stacks": _allocations,
    "results": _aligned,
    "ranks": _ranks,
    "collectives": _dumped,
    "node_costs": lambda trace: [_counted("node", len(trace.frames["node_costs"]))],
}


def _figures(meta: Mapping[str, Any], ops: pd.DataFrame | None) -> list[tuple[str, str]]:
    figures = [] if ops is None else _counts(ops)
    wall_us, recorder_us = meta.get("wall_us"), meta.get("recorder_us")
    if wall_us is not None:
        # The step of opcost did not run.
        label = "counted in" if meta.get("verb") == "opcost" else "wall time"
        figures.append((label, units.duration(wall_us)))
    if recorder_us is not None:
        part = f" ({units.share(recorder_us / wall_us)})" if wall_us else ""
        figures.append(("overhead", f"about {units.duration(recorder_us)}{part}"))
    if recorder := meta.get("recorder"):
        figures.append(("recorder", shown(str(recorder))))
    if repeats := meta.get("repeats"):
        warmup = meta.get("warmup")
        figures.append(
            ("median of", units.counted(repeats, "repeat") + (f" after {warmup} to warm up" if warmup else ""))
        )
    if devices := meta.get("devices"):
        figures.append(("device" if len(devices) == 1 else "devices", shown(", ".join(map(str, devices)))))
    if torch := meta.get("versions", {}).get("torch"):
        figures.append(("torch", shown(str(torch))))
    return figures


def _counts(ops: pd.DataFrame) -> list[tuple[str, str]]:
    """Counts the rows of each level, and all of them unless they are a timeline, which mixes different things."""
    levels = {str(level): int(number) for level, number in ops["level"].value_counts(sort=False).items()}
    counts = [_counted("op", len(ops))]
    if len(levels) < 2:
        return counts
    nouns = LEVEL_NOUNS | {level: (shown(level), shown(level)) for level in levels if level not in LEVEL_NOUNS}
    if ops["op"].where(ops["level"] == "range").str.contains(AUTOGRAD, na=False).any():
        nouns["range"] = ("autograd node", "autograd nodes and other ranges")
    kinds = [(nouns[level][levels[level] != 1], units.count(levels[level])) for level in nouns if level in levels]
    return kinds if is_timeline(ops) else counts + kinds


def _notes(meta: Mapping[str, Any]) -> list[str]:
    notes = [shown(str(note)) for note in meta.get("notes", [])]
    notes += [shown(f"{SKIPPED}{number:,}: {reason}") for reason, number in meta.get("skipped", {}).items()]
    if skipped := meta.get("skipped_lines"):
        first = skipped[0]
        reason = f": {first['reason']}" if first.get("reason") else ""
        lines = (
            f"{units.counted(len(skipped), 'line')} could not be read, the first is line {first.get('line')}{reason}"
        )
        notes.append(shown(lines))
    if filtered := meta.get("filtered_ops"):
        options = ", ".join(f"{option}={text}" for option, text in meta.get("filters", {}).items())
        notes.append(shown(f"left out by filters: {units.counted(int(filtered), 'op')}{options and f' ({options})'}"))
    return notes


def _stopped_cost(trace: Trace) -> str:
    """Says where a step stopped whose cost is counted, that the rest is unknown, and why; empty for other traces."""
    error, count = trace.meta.get("error"), len(trace.frames.get("costs", ()))
    if trace.meta.get("verb") != "opcost" or not isinstance(error, dict):
        return ""
    at = f"by {error.get('type', 'an error')}"
    if error.get("op_id") is not None:
        at = f"at {str(trace.ops['op'].iloc[error['op_id']]).removesuffix('.default')}"
    where = f" ({error['source']})" if error.get("source") else ""
    known = f" beyond the {units.counted(count, 'op')} before it" if count else ""
    why = _why_incomplete({**error, "op_id": None, "source": None})
    return f"{shown(f'Stopped {at}{where}: cost is unknown{known}.')} {why}"


def _why_incomplete(error: Mapping[str, Any] | str | None, is_graph: bool = False) -> str:
    """Says why a recording ended early; of a dump the text of its crash."""
    if not error:
        return "parts of the source could not be read" if is_graph else "the recorded code did not run to its end"
    if isinstance(error, str):
        return shown(error, 500)
    location = [f"op {error['op_id']}"] if error.get("op_id") is not None else []
    location += [shown(str(error["source"]))] if error.get("source") else []
    if place := error.get("failed_in_nbkit"):
        failure = nbkit_failed(str(error.get("type")), str(error.get("message")), str(place))
        return shown(please_report(f"{failure}, not the recorded code; what was recorded until then is kept."), 700)
    message = shown(f"{error.get('type', 'error')}: {error.get('message', '')}", 500)
    return f"{message} (at {', '.join(location)})" if location else message
