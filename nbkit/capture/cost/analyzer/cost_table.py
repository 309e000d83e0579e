"""Runs a model's forward and backward pass on shapes, and makes the Analyzer's table of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from nbkit.capture.cost.analyzer.nodes import Nodes
from nbkit.capture.cost.analyzer.rows import SIZINGS, node_costs, node_flops
from nbkit.capture.cost.fake_step import FakeStep
from nbkit.capture.cost.observer import CostObserver
from nbkit.capture.raw.recording import Recording, current_node
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.errors import OptionError, nearest
from nbkit.flops.analyzer import analyzer_flops
from nbkit.trace.trace import Trace

LAYER_NORM = torch.ops.aten.native_layer_norm.default
CONVENTIONS = {
    "nbkit": {"attention": "default", "sizing": "storage", "layer_norm": "contiguous"},
    "analyzer": {"attention": "math", "sizing": "view", "layer_norm": "input strides"},
}
FLOPS = {
    "nbkit": "2 x multiply-adds of matrix products, convolutions and attention",
    "analyzer": "multiply-adds, and one for each element of an elementwise op; 5 in a norm",
}
CHOICES = {
    "attention": ("default", "math"),
    "sizing": tuple(SIZINGS),
    "layer_norm": ("contiguous", "input strides"),
}


def cost_table(
    model: nn.Module | Callable[[], nn.Module],
    *inputs: Any,
    convention: str = "nbkit",
    attention: str | None = None,
    sizing: str | None = None,
    layer_norm: str | None = None,
    **keywords: Any,
) -> pd.DataFrame:
    """Returns what each node of a model's forward pass saves, holds and counts: the table of the Colossal-AI Analyzer.

    Forward and backward pass run on shapes alone, as in `opcost`: nothing is computed, and the model stays as it was. A
    call of a module of torch.nn is a row, and a call of a tensor function in any other module; names are those of
    torch.fx, but the model's own Python code runs, with its loops and its branches on shapes, so that no graph is
    traced: a function mode sees the functions and a patch of `nn.Module.__call__` the modules. The frame is NODE_COSTS
    of the schema, sizes in bytes. `attrs` has the options, and in `attrs["flops"]` what was counted;
    `nbkit.cost_table_text` writes it as text. Backward FLOPs are those of the gradients that autograd computes: of
    inputs only where they require some. What a checkpoint computes again in the backward pass is in no row.

    Args:
        model: the model, or a function that makes it: made on shapes alone, it may be larger than the machine.
        inputs: what its forward takes.
        convention: "nbkit" counts 2 x multiply-adds, and the memory that saved tensors keep alive. "analyzer" sets the
            options below as the Analyzer does, and counts by its rules: multiply-adds once, elementwise ops too.
        attention: "math" runs scaled dot product attention as its separate ops, "default" as torch chooses.
        sizing: "storage" counts the memory under a saved tensor, "view" the tensor that was saved of it last.
        layer_norm: "input strides" returns layer norms laid out as their inputs, as the Analyzer takes it, which
            decides what is copied and saved after them; "contiguous" as torch's kernels do.
        keywords: more of what its forward takes, by name.

    Raises:
        OptionError: for what is no module and makes none, or an unknown value of an option.
        CostError: from an op that needs values, or has no rule for the shape of its result; it names module and line.
    """
    options = _options(convention, {"attention": attention, "sizing": sizing, "layer_norm": layer_norm})
    observer = _NodeObserver(options)
    with _NodeRecorder(observer), _attention(options["attention"]):
        made = _made(model)
        for name, value in signature(made.forward).bind(*inputs, **keywords).arguments.items():
            observer.nodes.placeholder(name, value)
        with observer.nodes.collecting(made):
            result = made(*inputs, **keywords)
        observer.nodes.output(result)
        observer.run_backward(result)
    assert observer.table is not None
    observer.table.attrs = {"model": type(made).__name__, **options, "flops": FLOPS[convention]}
    return observer.table


def _made(model: Any) -> nn.Module:
    made = model() if callable(model) and not isinstance(model, nn.Module) else model
    if not isinstance(made, nn.Module):
        raise OptionError(
            f"cost_table() is given a {type(made).__name__}, and needs a torch.nn.Module or a function that makes one; "
            "give the model first, then what its forward takes."
        )
    return made


def _options(convention: str, asked: dict[str, str | None]) -> dict[str, str]:
    if convention not in CONVENTIONS:
        raise OptionError(f"convention={convention!r} is not known; {nearest(str(convention), CONVENTIONS)}")
    options = {"convention": convention, **CONVENTIONS[convention]}
    for name, value in asked.items():
        if value is not None:
            if value not in CHOICES[name]:
                raise OptionError(f"{name}={value!r} is not known; {nearest(str(value), CHOICES[name])}")
            options[name] = value
    return options


def _attention(choice: str) -> AbstractContextManager[None]:
    return sdpa_kernel(SDPBackend.MATH) if choice == "math" else nullcontext()


class _NodeRecorder(Recorder):
    """Records the two passes."""

    verb = "cost_table"


class _NormsLaidOutAsInputs(FakeStep):
    """Returns layer norms with the strides of their inputs."""

    def _run(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        out = super()._run(func, args, kwargs)
        return (torch.empty_like(args[0]), *out[1:]) if func is LAYER_NORM else out


class _NodeObserver(CostObserver):
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
        if nodes and trace.meta.get("complete", True):
            flops = node_flops(nodes, self.counted, ops, op_ids)
            modules = [node.module if node.module is not None else _caller(node, ops, op_ids) for node in nodes]
            self.table = node_costs(nodes, self.saved.saved, self.storages.all, self.options["sizing"], flops, modules)
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


def _caller(node: Any, ops: pd.DataFrame, op_ids: np.ndarray) -> str | None:
    """Returns the module in which the first op of a node ran."""
    ids = op_ids[node.begin : node.end]
    ids = ids[ids >= 0]
    module = ops["module"].iloc[ids[0]] if len(ids) else None
    return module if isinstance(module, str) else None
