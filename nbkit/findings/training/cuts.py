"""Finds the op that cuts autograd's graph between parameters and what the loss was computed from."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from nbkit.findings.training.facts import Audit
from nbkit.ops.families import CONSTANTS, DETACHES, UNFILLED
from nbkit.ops.names import packet_of
from nbkit.step.step import Step

# Calls that take values out of torch.
LEAVING = frozenset(("torch.Tensor.numpy", "torch.Tensor.tolist", "torch.Tensor.__array__", "torch.Tensor.item"))
MOST_GROUPS = 100
# They read nothing of a tensor but its shape.
OF_SHAPES = CONSTANTS | UNFILLED


class Cut(NamedTuple):
    """Describes where the graph ends: `kind` is cut, choice (a comparison or an index, by which values with a graph of
    their own are masked or weighed), data (read through .data), values (of Python), no_grad, collective, or checkpoint:
    within one of Audit.closed, the first of those on its line.
    """

    op_id: int
    kind: str


class Call(NamedTuple):
    """Describes one aten op outside of backward passes: (tensor_id, requires_grad) of its tensors."""

    op_id: int
    inputs: list[tuple[int, bool]]
    outputs: list[tuple[int, bool]]


class GradientFlow:
    """Follows values with and without autograd's graph through the forward ops of a recording."""

    def __init__(self, audit: Audit) -> None:
        ops, tensors = audit.ops, audit.tensors
        self.ops = ops
        self.names = ops["op"].to_numpy(object)
        self.sources = ops["source"].to_numpy(object)
        parents = ops["parent_id"].fillna(-1).to_numpy(dtype=np.int64)
        self.leaves = [parent >= 0 and self.names[parent] in LEAVING for parent in parents.tolist()]
        # As LEAVING, also by float() and in conditions.
        self.reads_value = self.names == "aten._local_scalar_dense.default"
        aside = ops["phase"].isin(["backward", "optimizer"]).to_numpy(dtype=bool)
        rows = tensors[~aside[tensors["op_id"].to_numpy()]]
        self.is_float = set(rows["tensor_id"][rows["dtype"].str.contains("float")].tolist())
        self.shapes = dict(zip(rows["tensor_id"].tolist(), rows["shape"].tolist(), strict=True))
        self.named = {
            str(name): set(of.tolist()) for name, of in rows.dropna(subset=["name"]).groupby("name")["tensor_id"]
        }
        self.calls = list(_calls(Step(ops, rows)))
        self.produced = {tensor for call in self.calls for tensor, _ in call.outputs if not self._enters(call)}
        self.choosing = {call.op_id for call in self.calls if self._is_choice(call)}
        self.computed = self._computed()
        self.consumed = {tensor for call in self.calls for tensor, _ in call.inputs}
        self.in_module = ops["module"].notna().to_numpy(dtype=bool)
        # A backward pass of a scalar begins with ones_like() of it.
        begins = (self.names == "aten.ones_like.default") & (ops["phase"] == "backward").to_numpy(dtype=bool)
        roots = tensors[begins[tensors["op_id"].to_numpy()] & (tensors["role"] == "input")]
        self.roots = set(roots["tensor_id"].tolist())
        self.ends: set[int] = set()  # losses that need no graph of their own to be reached
        self.differentiated = set(ops["forward_op_id"].dropna().astype(int).tolist()) | self._below_roots()

    def _is_choice(self, call: Call) -> bool:
        is_aside = self.leaves[call.op_id] or self.reads_value[call.op_id]
        return not is_aside and not any(tensor in self.is_float for tensor, _ in call.outputs)

    def _computed(self) -> set[int]:
        """Returns what ops made of more than parameters: what has a graph beside a weight and its transpose."""
        weights = set().union(*self.named.values()) if self.named else set()
        found = set()
        for call in self.calls:
            made = {tensor for tensor, _ in call.outputs}
            if call.inputs and all(tensor in weights for tensor, _ in call.inputs):
                weights |= made
            else:
                found |= made
        return found

    def _below_roots(self) -> set[int]:
        """Returns the ops that a loss was computed by: an addition has no backward op of its own."""
        below = set(self.roots)
        found = set()
        for call in reversed(self.calls):
            if any(requires_grad and tensor in below for tensor, requires_grad in call.outputs):
                found.add(call.op_id)
                below |= {tensor for tensor, requires_grad in call.inputs if requires_grad}
        return found

    def _enters(self, call: Call) -> bool:
        return str(self.names[call.op_id]).startswith("aten.lift_fresh")

    def cut_of_loss(self, names: list[str]) -> Cut | None:
        """Returns the first op after which a loss without a graph has what these parameters give, and nothing else.

        To be asked only where no backward pass reached them.
        """
        self.leaves = [leaves or reads for leaves, reads in zip(self.leaves, self.reads_value.tolist(), strict=True)]
        self.produced -= {tensor for call in self.calls if self._enters(call) for tensor, _ in call.inputs}
        self.ends = self.roots
        return self.cut(names)

    def cut(self, names: list[str]) -> Cut | None:
        """Returns the first op after which what these parameters give reaches the loss without a graph."""
        live = set().union(*(self.named.get(name, set()) for name in names))
        known = set(live)
        dead: dict[int, Cut] = {}
        left: dict[int, Cut] = {}  # tensors whose values left torch
        for call in self.calls:
            self._enter(call, left, dead)
            self._made_of_values(call, live, dead)
            if packet_of(self.names[call.op_id]) in OF_SHAPES:
                continue
            is_live, cut = _inputs(call, live, known, dead)
            if is_live and str(self.names[call.op_id]).startswith("c10d."):
                # The tensors that it writes are said to require a gradient, and get none.
                dead |= {tensor: Cut(call.op_id, "collective") for tensor, _ in call.outputs}
                continue
            if cut is not None and call.op_id in self.differentiated:
                return self._met(cut, call, dead)
            if is_live and any(requires_grad for _, requires_grad in call.outputs):
                live.update(tensor for tensor, requires_grad in call.outputs if requires_grad)
                continue
            if is_live and cut is None:
                cut = Cut(call.op_id, self._kind(call))
            if cut is not None:
                dead |= {tensor: cut for tensor, requires_grad in call.outputs if not requires_grad}
                if any(tensor in self.ends for tensor, _ in call.outputs):
                    return cut
                if self.leaves[call.op_id]:
                    left |= {tensor: cut for tensor, _ in call.inputs}
        return None

    def _enter(self, call: Call, left: dict[int, Cut], dead: dict[int, Cut]) -> None:
        """Marks values that come into torch where such that left it before would: same line, or same shape."""
        for tensor, _ in call.inputs if left else ():
            if tensor in self.produced or tensor in dead or tensor not in self.is_float:
                continue
            for origin, cut in left.items():
                if self.shapes[origin] == self.shapes[tensor] or self.sources[cut.op_id] == self.sources[call.op_id]:
                    dead[tensor] = cut
                    break

    def _made_of_values(self, call: Call, live: set[int], dead: dict[int, Cut]) -> None:
        """Marks a tensor that a module makes of Python values, in the shape of a result that no op reads."""
        if not self._enters(call) or not self.in_module[call.op_id]:
            return
        shapes = {self.shapes[tensor] for tensor in live - self.consumed if tensor in self.shapes}
        for tensor, _ in call.inputs:
            if tensor not in dead and tensor in self.is_float and self.shapes[tensor] in shapes:
                dead[tensor] = Cut(call.op_id, "values")

    def _kind(self, call: Call) -> str:
        gives_float = any(tensor in self.is_float for tensor, _ in call.outputs)
        # Other ops that hand values on without their graph ran without autograd, or have no gradient.
        is_detaching = packet_of(self.names[call.op_id]) in DETACHES
        return "no_grad" if gives_float and not is_detaching else "cut"

    def _met(self, cut: Cut, call: Call, dead: dict[int, Cut]) -> Cut:
        """Returns the cut as a choice, where it gives no numbers and `call` reads others that have a graph."""
        is_choice = cut.op_id in self.choosing and cut.kind == "cut"
        others = (tensor for tensor, requires_grad in call.inputs if requires_grad and tensor not in dead)
        return Cut(cut.op_id, "choice") if is_choice and any(one in self.computed for one in others) else cut


def _inputs(call: Call, live: set[int], known: set[int], dead: dict[int, Cut]) -> tuple[bool, Cut | None]:
    """Returns whether a call reads a value with a graph, and the cut behind those that it reads without."""
    is_live, cut = False, next((dead[tensor] for tensor, _ in call.inputs if tensor in dead), None)
    for tensor, requires_grad in call.inputs:
        if tensor in live and requires_grad:
            is_live = True
        elif tensor in live and tensor not in dead and tensor not in known:
            cut = cut or Cut(call.op_id, "data")
    return is_live, cut


def _calls(step: Step) -> Iterator[Call]:
    met = list(zip(step.tensor_ids.tolist(), step.tensors["requires_grad"].tolist(), strict=True))
    for op_id, inputs, outputs in step.calls():
        yield Call(op_id, [met[row] for row in inputs], [met[row] for row in outputs])


def find_cuts(audit: Audit, rows: pd.DataFrame) -> list[Cut | None]:
    """Returns the cut behind each of these parameters; null where nothing of it reaches the loss, or it is unknown."""
    if not len(rows):
        return []
    flow = GradientFlow(audit)
    cuts: dict[str, Cut | None] = {}
    for module, of in rows.groupby("module", sort=False):
        cuts[str(module)] = flow.cut(of["name"].tolist()) if len(cuts) < MOST_GROUPS else None
    return [_in_checkpoint(audit, cuts[module]) for module in rows["module"]]


def _in_checkpoint(audit: Audit, cut: Cut | None) -> Cut | None:
    """Returns a cut as that of the checkpoint around it, if there is one."""
    around = next((one for one in audit.closed if cut is not None and cut.op_id in one.ops), None)
    if around is None:
        return cut
    return Cut(next(one.ops.start for one in audit.closed if one.source == around.source), "checkpoint")
