"""Counts the cost of a model's two passes by the nodes of its forward pass."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from nbkit.capture.cost.analyzer.nodes import OUTPUT, Node, Nodes
from nbkit.capture.cost.analyzer.rows import node_costs, node_flops
from nbkit.capture.cost.fake_step import FakeStep
from nbkit.capture.cost.observer import CostObserver
from nbkit.capture.raw.recording import Recording, current_node
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.flops.analyzer import analyzer_flops
from nbkit.trace.trace import Trace

LAYER_NORM = torch.ops.aten.native_layer_norm.default


class _NormsLaidOutAsInputs(FakeStep):
    """Returns layer norms with the strides of their inputs."""

    def _run(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        out = super()._run(func, args, kwargs)
        return (torch.empty_like(args[0]), *out[1:]) if func is LAYER_NORM else out


class NodeObserver(CostObserver):
    """Counts the cost of a step by the nodes of a model; `table` is there when the recording has ended."""

    def __init__(self, options: dict[str, str]) -> None:
        self.nodes, self.options = Nodes(), options
        self.counted: list[tuple[int, int | None]] = []
        self.table: pd.DataFrame | None = None
        self.passed: Any = None  # the autograd node that has run last
        if options["layer_norm"] == "input strides":
            self.step_type = _NormsLaidOutAsInputs

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        modules.around = self.nodes
        with super().below(recording, modules):
            self.nodes.ledger = self
            yield

    def place(self) -> int:
        """Returns the slot of the next op."""
        return self._place()

    def saved_count(self) -> int:
        """Returns how many tensors have been saved."""
        return len(self.saved.saved)

    def run_backward(self, result: Any) -> None:
        """Runs the backward pass from all that a model returned."""
        outputs = [value for value in tree_leaves(result) if isinstance(value, Tensor) and value.requires_grad]
        hooks = [node.register_hook(self._note_passed) for node in _autograd_nodes(outputs)]
        try:
            if outputs:
                torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
        finally:
            for hook in hooks:
                hook.remove()

    def _note_passed(self, *gradients: Any) -> None:
        # What runs from here to the next node sums gradients of a tensor that was taken twice: autograd's own work.
        self.passed = current_node()

    def after(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> None:
        super().after(func, args, kwargs, out)
        node = current_node()
        if node is None or node is not self.passed:
            noted = self.costs.rows[-1]
            by_rule = self.options["convention"] == "analyzer"
            self.counted.append((noted.slot, analyzer_flops(func, args, kwargs, out) if by_rule else noted.flops))

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        frames, meta = super().frames(trace, ops, op_ids)
        nodes = self.nodes.nodes
        if nodes and nodes[-1].kind == OUTPUT:
            flops = node_flops(nodes, self.counted, ops, op_ids)
            modules = [node.module if node.module is not None else _caller(node, ops, op_ids) for node in nodes]
            saved, storages = self.saved.saved, self.storages.all
            self.table = node_costs(nodes, saved, storages, self.options, flops=flops, modules=modules)
        return frames, meta

    def forget(self) -> None:
        super().forget()
        self.nodes.ledger = self.passed = None


def _autograd_nodes(outputs: Sequence[Tensor]) -> list[Any]:
    """Returns all nodes of the graphs that end in these tensors."""
    waiting = [output.grad_fn for output in outputs]
    nodes: dict[Any, None] = {}
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes:
            nodes[node] = None
            waiting += [before for before, _ in node.next_functions]
    return [*nodes]


def _caller(node: Node, ops: pd.DataFrame, op_ids: np.ndarray) -> str | None:
    """Returns the module in which the first op of a node ran."""
    ids = op_ids[node.begin : node.end]
    ids = ids[ids >= 0]
    module = ops["module"].iloc[ids[0]] if len(ids) else None
    return module if isinstance(module, str) else None
