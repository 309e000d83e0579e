"""Names the line that changed in place what a backward pass needs, where autograd refused to go on."""

import re
from collections.abc import Iterator

import numpy as np

from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit
from nbkit.ops.names import packet_of
from nbkit.step.decode import sizes_of
from nbkit.step.step import Flags, Ints

REFUSED = re.compile(r"modified by an inplace operation: \[[\w.]+ \[([\d, ]*)\]\].*? is at version (\d+)")
ADVICE = (
    "Write it out of place, x = x * 2 instead of x *= 2, or change a clone(). Where it is an optimizer's step: run all "
    "backward passes that go through its parameters before it."
)


@rule("error", rank=5)
def modified_in_place(audit: Audit) -> Iterator[Finding]:
    """Autograd refuses a backward pass, as what it needs was modified by an in-place op: the last such op of a tensor
    of that shape.
    """
    refused = REFUSED.search(audit.error or "")
    if refused is None:
        return
    shape, version = f"[{refused[1]}]", int(refused[2])
    step = audit.step
    was_there = (step.writers >= 0) | step.tensors["name"].notna().to_numpy(bool)
    changes = np.flatnonzero(step.is_written & was_there)
    wanted = sizes_of(shape)
    of_shape = np.array([sizes_of(text) == wanted for text in step.tensors["shape"].tolist()], dtype=bool)
    changes = changes[np.isin(step.memory[changes], step.memory[of_shape]) & _is_read_before(audit, changes)]
    counts = {memory: int((step.memory[changes] == memory).sum()) for memory in step.memory[changes].tolist()}
    sure = [row for row in changes.tolist() if counts[int(step.memory[row])] == version]
    rows = sure or changes.tolist()
    if not rows:
        return
    row = max(rows, key=lambda each: int(step.op_ids[each]))
    op_id, name = int(step.op_ids[row]), step.tensors["name"].iloc[row]
    what = f"the parameter {name}" if isinstance(name, str) else f"a tensor of shape {shape}"
    finding = modified_in_place.finding(
        f"{packet_of(audit.ops['op'].iloc[op_id])} changes {what} in place, which the backward pass still needs as it "
        "was: autograd refuses to go on",
        ADVICE,
        evidence={"sure": bool(sure)},
    )
    yield at_ops(finding, audit.ops, [op_id], audit.texts)


def _is_read_before(audit: Audit, changes: Ints) -> Flags:
    """Returns which of these writes come after an op ahead that reads the memory and does not write it."""
    step, ahead = audit.step, audit.ops["phase"].isin(["forward", "other"]).to_numpy(bool)
    writing = {*zip(step.memory[step.is_written].tolist(), step.op_ids[step.is_written].tolist(), strict=True)}
    first: dict[int, int] = {}
    for row in np.flatnonzero(~step.is_output & ahead[step.op_ids]).tolist():
        place = int(step.memory[row]), int(step.op_ids[row])
        if place not in writing:
            first.setdefault(*place)
    never = len(audit.ops)
    return np.array([first.get(int(step.memory[row]), never) < step.op_ids[row] for row in changes.tolist()], bool)


AGAIN = "Trying to backward through the graph a second time"
CARRIED = (
    "Cut it off where a step begins: state = state.detach(). Where two losses share a part, add them up and call "
    "backward() once."
)


@rule("error", rank=6)
def second_backward(audit: Audit) -> Iterator[Finding]:
    """Autograd refuses a second backward pass through a part of the graph: the first op after a backward pass that
    reads what was made before it, or the second call on the same loss.
    """
    if AGAIN not in (audit.error or "") or len(audit.passes) < 2:
        return
    step, ahead = audit.step, audit.ops["phase"].isin(["forward", "other"]).to_numpy(bool)
    first, last = audit.passes[-2].ops, audit.passes[-1].ops
    is_carried = ~step.is_output & step.requires_grad & (step.makers >= 0) & ahead[step.op_ids]
    makers = np.append(step.op_ids, -1)[step.makers]
    is_carried &= (step.op_ids >= first.stop) & (makers < first.start) & (makers >= 0) & ahead[makers]
    rows = np.flatnonzero(is_carried)
    if len(rows):
        op_id = int(step.op_ids[rows[0]])
        op, maker = (packet_of(audit.ops["op"].iloc[one]) for one in (op_id, int(makers[rows[0]])))
        message = f"{op} reads what {maker} made before the last backward pass, whose graph is gone"
    else:
        op_id, message = last.start, "the backward pass goes through what a backward pass has gone through before"
    finding = second_backward.finding(f"{message}: autograd refuses to go on", CARRIED)
    yield at_ops(finding, audit.ops, [op_id], audit.texts)
