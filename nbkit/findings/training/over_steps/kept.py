"""Judges graphs that stay alive over steps, and random numbers that are the same at each step."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit, at_line
from nbkit.ops.families import DRAWS
from nbkit.ops.names import packet_of
from nbkit.step.reachable import reachable

# The results of the last step are alive at its end, and may be; so may those of the step before.
FEWEST_STEPS = 3
KEPT = "Keep numbers, not tensors with a graph: loss.item(), output.detach(), or compute it under torch.no_grad()."
CREATED = (
    "Leave create_graph out where no gradient is differentiated again; where one is, use torch.autograd.grad(), or set "
    ".grad of the parameters to None after each step. " + KEPT
)
SEED = "Call torch.manual_seed() once, before the first step; for numbers that are to repeat, use a generator."
# Of these the overload says whether a generator was given; of others only what calls them: no function here takes one.
SAID = frozenset(op for op in DRAWS if op.startswith("rand")) | {"native_dropout"}
DRAWN_BY = "torch.nn.functional."


@rule("hint", rank=280)
def kept_graph(audit: Audit) -> Iterator[Finding]:
    """Results of a line, or their graph, hold ops of three steps or more at the end; with the line of a
    `backward(create_graph=True)`.
    """
    if not audit.alive or audit.steps < FEWEST_STEPS:
        return
    graph = _Graph(audit)
    kept: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for op_id in graph.ends(audit.alive):
        op = audit.ops.iloc[op_id]
        kept[op["op"], op["module"] if isinstance(op["module"], str) else None, str(op["source"])].append(op_id)
    for op_ids in kept.values():
        steps = {step // max(1, len(audit.optimizers)) for op_id in op_ids for step in graph.steps(op_id)}
        if len(steps) >= FEWEST_STEPS:
            yield _kept(audit, op_ids, len(steps))


class _Graph:
    """Holds which op made each tensor that has a graph, outside of backward passes and optimizers."""

    def __init__(self, audit: Audit) -> None:
        self.step = audit.ops["step"].to_numpy(dtype=np.int64)
        ahead = audit.ops["phase"].isin(["forward", "other"]).to_numpy(dtype=bool)
        rows = audit.tensors[audit.tensors["requires_grad"] & audit.tensors["name"].isna()]
        rows = rows[ahead[rows["op_id"].to_numpy(dtype=np.int64)]]
        outputs, inputs = rows[rows["role"] == "output"], rows[rows["role"] == "input"]
        self.makers: dict[int, int] = dict(zip(outputs["tensor_id"].tolist(), outputs["op_id"].tolist(), strict=True))
        self.inputs: dict[int, list[int]] = {
            int(str(op_id)): of.tolist() for op_id, of in inputs.groupby("op_id")["tensor_id"]
        }

    def ends(self, alive: Iterable[int]) -> list[int]:
        """Returns the ops whose results are alive and are in no graph of another such: what the graph itself saved."""
        made = {self.makers[tensor] for tensor in alive if tensor in self.makers}
        before = {maker for op_id in made for maker in self._before(op_id)}
        return sorted(made - self._with_all_before(before))

    def steps(self, op_id: int) -> set[int]:
        """Returns the steps of all ops that the graph of a result holds."""
        return {int(self.step[op]) for op in self._with_all_before({op_id})}

    def _before(self, op_id: int) -> set[int]:
        """Returns the ops that made what an op read, as far as it has a graph."""
        return {self.makers[tensor] for tensor in self.inputs.get(op_id, []) if tensor in self.makers}

    def _with_all_before(self, op_ids: set[int]) -> set[int]:
        """Returns ops and all that their results were computed by."""
        return set(reachable(op_ids, self._before))


def _kept(audit: Audit, op_ids: list[int], steps: int) -> Finding:
    op = audit.ops.iloc[op_ids[-1]]
    module = op["module"]
    where = f" in {module}" if isinstance(module, str) and module else ""
    many, created = f"{len(op_ids)} results" if len(op_ids) > 1 else "A result", _by_create_graph(audit)
    finding = kept_graph.finding(
        message=f"{many} of {op['op'].rpartition('.')[0]}{where} {'are' if len(op_ids) > 1 else 'is'} kept with "
        f"{'their' if len(op_ids) > 1 else 'its'} autograd graph, which holds ops of {steps} steps: "
        f"memory grows with each step{created}",
        advice=CREATED if created else KEPT,
    )
    return at_ops(finding, audit.ops, op_ids, audit.texts)


def _by_create_graph(audit: Audit) -> str:
    """Says at which line a backward pass gives gradients a graph of their own; nothing where none does."""
    rows = next((one.ops for one in audit.passes if one.creates_graph and len(one.ops)), None)
    if rows is None:
        return ""
    line = at_line(audit, audit.ops["source"].iloc[rows[0]])
    return f". backward(create_graph=True) gives each gradient a graph, too{line}"


@rule("hint", rank=290)
def repeated_draws(audit: Audit) -> list[Finding]:
    """Torch's generator stands after a step where it stood after the one before, and the step drew from it."""
    if not audit.repeated_draws:
        return []
    ops = audit.ops
    callers = ops["parent_id"].map(ops["op"]).fillna("").str
    packets = ops["op"].map(packet_of)
    is_own = packets.isin(SAID) & ~ops["op"].str.contains("generator")
    is_draw = is_own | packets.isin(DRAWS) & callers.startswith(DRAWN_BY)
    drawn = ops[is_draw & (ops["level"] == "aten") & (ops["phase"] != "optimizer") & (ops["device"] == "cpu")]
    repeated = [drawn[drawn["op_id"].isin(between)] for between in audit.repeated_draws]
    if not any(map(len, repeated)):
        return []
    draws = pd.concat(repeated)
    line = at_line(audit, draws["source"].iloc[0])
    several = sum(len(rows) > 0 for rows in repeated) + 1
    finding = repeated_draws.finding(
        message=f"{several} steps draw the same random numbers, the first with "
        f"{draws['op'].iloc[0].rpartition('.')[0]}{line}: torch's generator is set anew in each",
        advice=SEED,
    )
    return [at_ops(finding, ops, draws["op_id"].astype(int).tolist(), audit.texts)]
