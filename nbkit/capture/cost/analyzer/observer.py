"""Counts the cost of a model's two passes by the nodes of its forward pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch._ops import OpOverload

from nbkit.capture.cost.analyzer.nodes import OUTPUT, Node, Nodes
from nbkit.capture.cost.analyzer.rows import node_costs, node_flops
from nbkit.capture.cost.fake.fake_step import FakeStep
from nbkit.capture.cost.observer import CostObserver
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.ops.flops.analyzer import analyzer_flops
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
        super().__init__()
        self.nodes, self.options = Nodes(splits_bias=options["bias"] == "split"), options
        self.counted: list[tuple[int, int | None]] = []
        self.table: pd.DataFrame | None = None
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

    def after(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> int:
        alike = self.step.alike
        flops = super().after(func, args, kwargs, out)
        if not self.sums.is_running():
            counted = self.costs.costs[-1].flops
            if self.options["convention"] == "analyzer":
                counted = None if alike is None else alike.costs.get("analyzer")
                if counted is None:
                    counted = analyzer_flops(func, args, kwargs, out)
                    if alike is not None:
                        alike.costs["analyzer"] = counted
            self.counted.append((self.place(), counted))
        return flops

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        """Makes the table; the frames of opcost, a quarter of what the table takes in all, are of no use to it."""
        self._note_models()
        nodes = self.nodes.nodes
        if nodes and nodes[-1].kind == OUTPUT:
            flops = node_flops(nodes, self.counted, ops, op_ids)
            modules = [node.module if node.module is not None else _caller(node, ops, op_ids) for node in nodes]
            saved, storages = self.saved.saved, self.storages.all
            self.table = node_costs(nodes, saved, storages, self.options, flops=flops, modules=modules)
        return {}, {}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        return frames, meta

    def forget(self) -> None:
        super().forget()
        self.nodes.ledger = None


def _caller(node: Node, ops: pd.DataFrame, op_ids: np.ndarray) -> str | None:
    """Returns the module in which the first op of a node ran."""
    ids = op_ids[node.begin : node.end]
    ids = ids[ids >= 0]
    module = ops["module"].iloc[ids[0]] if len(ids) else None
    return module if isinstance(module, str) else None
