"""Finds values that several modules of one model compute anew, though they are the same: tables of positions, masks."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from nbkit.findings.finding import Finding, rule
from nbkit.findings.waste.step import RecordedStep
from nbkit.ops.families import DRAWS, DROPOUTS, family
from nbkit.ops.names import packet_of
from nbkit.step.step import Call, Step

DRAWING = DRAWS | DROPOUTS
# Memory to write into, of which each needs its own, and copies: torch.autocast casts an input for each of its readers.
FILLING = family("UNFILLED CONSTANTS OVERWRITING COPIES arange")
FEWEST_MODULES = 3
# Of all that the forward pass writes; and of one result.
LEAST_SHARE, LEAST_ELEMENTS = 0.01, 256
ADVICE = (
    "Compute it once, in the model around them, and hand it to all; a buffer holds what does not depend on the input."
)
UNKNOWN = (None, 0)


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
    written = step.dataflow.is_output & step.in_module[step.dataflow.op_ids]
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
    """Yields the ops of the forward pass that compute again what one of another module has computed.

    Values are the same where the same op made them of the same values with the same arguments, and nothing wrote into
    their memory since.
    """
    ops, in_module, parent = step.ops, step.in_module.tolist(), step.parent
    names, arguments, modules, steps = (ops[name].tolist() for name in ("op", "arguments", "module", "step"))
    is_op, numel, sizes = step.is_op.tolist(), step.tensors["numel"].to_numpy(), step.sizes
    numbering, of_step = _Numbering(step.dataflow), 0
    for call in step.dataflow.calls():
        row = call.op_id
        if not is_op[row]:
            continue
        if steps[row] != of_step:
            numbering.forget()
            of_step = steps[row]
        is_unique = not names[row].startswith("aten.") or packet_of(names[row]) in DRAWING
        first = numbering.note(call, row if is_unique else (names[row], str(arguments[row])))
        is_elsewhere = in_module[row] and in_module[first] and modules[first] != modules[row]
        is_made = any(numbering.is_written[at] for at in call.outputs)
        if first == row or not is_elsewhere or not is_made or packet_of(names[row]) in FILLING:
            continue
        called = names[parent[row]] if parent[row] >= 0 else ""
        if numel[call.outputs].max() >= LEAST_ELEMENTS and "attention" not in called:
            yield Repeat(row, first, int(sizes[call.outputs].sum()))


class _Numbering:
    """Tells which values are the same, by what made them."""

    def __init__(self, step: Step) -> None:
        self.tensors, self.memory = step.tensor_ids.tolist(), step.memory.tolist()
        self.is_written = step.is_written.tolist()
        self.forget()

    def forget(self) -> None:
        """Begins anew."""
        self.first: dict[Hashable, int] = {}
        # By tensor: op and result that made it, and how often its memory had been written then.
        self.values: dict[int, tuple[Hashable, int]] = {}
        self.writes: Counter[int] = Counter()

    def note(self, call: Call, what: Hashable) -> int:
        """Notes an op; returns the first one that computed the same."""
        first = self.first.setdefault((what, *map(self._value, call.inputs)), call.op_id)
        for at, row in enumerate(call.outputs):
            self.writes[self.memory[row]] += self.is_written[row]
            self.values[self.tensors[row]] = ((first, at), self.writes[self.memory[row]])
        return first

    def _value(self, row: int) -> Hashable:
        """Returns what stands for the values of a tensor: what made them; else the tensor as it is now."""
        made, writes = self.values.get(self.tensors[row], UNKNOWN)
        now = self.writes[self.memory[row]]
        return made if made is not None and writes == now else ("tensor", self.tensors[row], now)
