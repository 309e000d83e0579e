"""Finds values that several modules of one model compute anew, though they are the same: tables of positions, masks."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from nbkit.findings.finding import Finding, rule
from nbkit.findings.waste.step import RecordedStep
from nbkit.ops.families import family
from nbkit.ops.names import packet_of

# Memory to write into, of which each needs its own, and copies: torch.autocast casts an input for each of its readers.
FILLING = family("UNFILLED CONSTANTS OVERWRITING COPIES arange")
FEWEST_MODULES = 3
# Of all that the forward pass writes; and of one result.
LEAST_SHARE, LEAST_ELEMENTS = 0.01, 256
ADVICE = (
    "Compute it once, in the model around them, and hand it to all; a buffer holds what does not depend on the input."
)


class Repeat(NamedTuple):
    """Holds an op that computes what an earlier one in another module has computed: their rows, and the bytes of it."""

    row: int
    first: int
    bytes: int


@rule("hint", rank=50)
def repeated_work(step: RecordedStep) -> list[Finding]:
    """Three modules or more of a model compute the same values in one step, each for itself, by the same ops from the
    same tensors: 1 % of all that the forward pass writes; not views, not memory to write into, not inside fused
    attention.
    """
    modules, sources = step.ops["module"].tolist(), step.ops["source"].tolist()
    groups: dict[frozenset[str], list[Repeat]] = defaultdict(list)
    by_line: dict[object, list[Repeat]] = defaultdict(list)
    for repeat in _repeats(step):
        by_line[sources[repeat.row]].append(repeat)
    for repeats in by_line.values():
        groups[frozenset(modules[row] for repeat in repeats for row in repeat[:2])] += repeats
    written = step.is_output & step.in_module[step.op_ids]
    least = LEAST_SHARE * max(int(step.sizes[written].sum()), 1)
    return [
        _finding(step, names, repeats)
        for names, repeats in groups.items()
        if len(names) >= FEWEST_MODULES and sum(repeat.bytes for repeat in repeats) >= least
    ]


def _finding(step: RecordedStep, modules: frozenset[str], repeats: list[Repeat]) -> Finding:
    rows = sorted(repeat.row for repeat in repeats)
    of_line = Counter(step.ops["source"].iloc[rows].tolist())
    lines = "this line" if len(of_line) == 1 else f"this line and {len(of_line) - 1:,} more"
    message = f"{len(modules):,} modules compute the same values, each for itself, by {lines}"
    finding = repeated_work.finding(
        message,
        ADVICE,
        effect_bytes=sum(repeat.bytes for repeat in repeats),
        evidence={"modules": sorted(modules), "first_op_ids": sorted({repeat.first for repeat in repeats})},
    )
    return step.finding(finding, rows)


def _repeats(step: RecordedStep) -> Iterator[Repeat]:
    """Yields the ops of the forward pass that compute again what one of another module has computed."""
    in_module, parent = step.in_module.tolist(), step.parent
    names, modules = step.ops["op"].tolist(), step.ops["module"].tolist()
    is_written, numel, firsts = step.is_written, step.tensors["numel"].to_numpy(), step.firsts.tolist()
    for call in step.calls():
        row, first = call.op_id, firsts[call.op_id]
        if first in (row, -1) or packet_of(names[row]) in FILLING or not is_written[call.outputs].any():
            continue
        called = names[parent[row]] if parent[row] >= 0 else ""
        is_elsewhere = in_module[row] and in_module[first] and modules[first] != modules[row]
        if is_elsewhere and numel[call.outputs].max() >= LEAST_ELEMENTS and "attention" not in called:
            yield Repeat(row, first, int(step.sizes[call.outputs].sum()))
