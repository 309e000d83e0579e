"""Finds gradients of embeddings of which nearly all rows are 0."""

from collections.abc import Iterator

import numpy as np

from nbkit import units
from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.step import Ints
from nbkit.findings.waste.step import RecordedStep
from nbkit.step.decode import sizes_of

LEAST_ZERO, LEAST_BYTES = 0.999, 1 << 20
ADVICE = (
    "Let the gradient hold the rows that were looked up alone: nn.Embedding(..., sparse=True), with "
    "torch.optim.SparseAdam or SGD for this table. Their momentum moves a row only when it is looked up."
)


@rule("hint", rank=60)
def zero_rows(step: RecordedStep) -> Iterator[Finding]:
    """An embedding's gradient of 1 MiB or more has 99.9 % of its rows 0, and nothing but lookups reads the table."""
    backward = np.flatnonzero(step.named("embedding_dense_backward"))
    forward = step.ops["forward_op_id"].to_numpy(np.int64, na_value=-1)[backward]
    backward, forward = backward[forward >= 0], forward[forward >= 0]
    tables, gradients = step.tensor_rows(forward, "input"), step.tensor_rows(backward, "output")
    indices = step.tensor_rows(backward, "input", 1)
    memory, numel = step.memory, step.tensors["numel"].to_numpy(np.int64)
    for of in np.unique(memory[tables[forward]]).tolist():
        rows = backward[memory[tables[forward]] == of]
        name = step.held_names.get(of)
        if name is None or not _is_only_looked_up(step, of):
            continue
        steps = step.ops["step"].iloc[rows].nunique()
        count = sizes_of(step.tensors["shape"].iloc[gradients[rows[0]]])[0]
        looked_up, size = numel[indices[rows]].sum() / max(steps, 1), int(step.sizes[gradients[rows[0]]])
        if size >= LEAST_BYTES and looked_up <= (1 - LEAST_ZERO) * count:
            message = (
                f"the gradient of {name} has {units.data_size(size)}, and at most {int(looked_up):,} of its "
                f"{count:,} rows are not 0; the optimizer reads and writes all of them"
            )
            yield step.finding(zero_rows.finding(message, ADVICE, parameter=name, effect_bytes=size), rows)


def _is_only_looked_up(step: RecordedStep, memory: int) -> bool:
    """Returns whether no op of the forward pass but a lookup reads a table."""
    rows = np.flatnonzero((step.memory == memory) & ~step.is_output)
    ops: Ints = step.op_ids[rows]
    ahead = ops[step.in_phase("forward")[ops] & step.is_op[ops]]
    return bool(step.named("embedding")[ahead].all())
