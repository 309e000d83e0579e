"""Runs a model's forward and backward pass on shapes, and makes the Analyzer's table of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from nbkit.capture.cost.analyzer.observer import NodeObserver
from nbkit.capture.cost.analyzer.rows import SIZINGS
from nbkit.capture.recorder.recorder import Recorder
from nbkit.errors import CostError, OptionError, nearest

CONVENTIONS = {
    "nbkit": {"attention": "default", "sizing": "storage", "layer_norm": "contiguous", "bias": "joined"},
    "analyzer": {"attention": "math", "sizing": "view", "layer_norm": "input strides", "bias": "joined"},
}
FLOPS = {
    "nbkit": "2 x multiply-adds of matrix products, convolutions and attention",
    "analyzer": "multiply-adds, and one for each element of an elementwise op; 5 in a norm",
}
CHOICES = {
    "attention": ("default", "math"),
    "sizing": tuple(SIZINGS),
    "layer_norm": ("contiguous", "input strides"),
    "bias": ("joined", "split"),
}


def cost_table(
    model: nn.Module | Callable[[], nn.Module],
    *inputs: Any,
    convention: str = "nbkit",
    attention: str | None = None,
    sizing: str | None = None,
    layer_norm: str | None = None,
    bias: str | None = None,
    **keywords: Any,
) -> pd.DataFrame:
    """Returns what each node of a model's forward pass saves, holds and counts: the table of the Colossal-AI Analyzer.

    Forward and backward pass run on shapes alone, as in `opcost`: nothing is computed, and the model stays as it was. A
    call of a module of torch.nn is a row, and a call of a tensor function in any other module; names are those of
    torch.fx, but the model's own Python code runs, with its loops and its branches on shapes, so that no graph is
    traced: a function mode sees the functions and a patch of `nn.Module.__call__` the modules. The frame is NODE_COSTS
    of the schema, sizes in bytes. `attrs` has the options, and in `attrs["flops"]` what was counted;
    `nbkit.cost_table_text` writes it as text. Backward FLOPs are those of the gradients that autograd computes: of
    inputs only where they require some, and without the sums of gradients that autograd adds between two nodes. What a
    checkpoint computes again is in the row of the op that needs it first.

    Args:
        model: the model, or a function that makes it: made on shapes alone, it may be larger than the machine.
        inputs: what its forward takes.
        convention: "nbkit" counts 2 x multiply-adds, and the memory that saved tensors keep alive. "analyzer" sets the
            options below as the Analyzer does, and counts by its rules: multiply-adds once, elementwise ops too.
        attention: "math" runs scaled dot product attention as its separate ops, "default" as torch chooses.
        sizing: "storage" counts the memory under a saved tensor, "view" the tensor that was saved of it last.
        layer_norm: "input strides" returns layer norms laid out as their inputs, as the Analyzer takes it, which
            decides what is copied and saved after them; "contiguous" as torch's kernels do.
        bias: "split" makes two nodes of each call that adds a bias to a product, the product and the sum, as the
            Analyzer does with bias_addition_split: of Linear, convolutions, their functions, addmm and addbmm; "joined"
            leaves it one. What a module such as MultiheadAttention does inside stays one node.
        keywords: more of what its forward takes, by name.

    Raises:
        OptionError: for what is no module and makes none, or an unknown value of an option.
        CostError: from an op that needs values, or has no rule for the shape of its result; it names module and line.
    """
    options = _options(convention, {"attention": attention, "sizing": sizing, "layer_norm": layer_norm, "bias": bias})
    observer = NodeObserver(options)
    with _NodeRecorder(observer), _attention(options["attention"]):
        made = _made(model)
        for name, value in signature(made.forward).bind(*inputs, **keywords).arguments.items():
            observer.nodes.placeholder(name, value)
        with observer.nodes.collecting(made):
            result = made(*inputs, **keywords)
        observer.nodes.output(result)
        _run_backward(result)
    assert observer.table is not None
    observer.table.attrs.update({"model": type(made).__name__, **options, "flops": FLOPS[convention]})
    return observer.table


def _made(model: Any) -> nn.Module:
    try:
        made = model() if callable(model) and not isinstance(model, nn.Module) else model
    except RuntimeError as error:
        if "Uninitialized" not in str(error):  # torch's parameters and buffers without a shape
            raise
        raise CostError(
            "The function that cost_table() is given makes modules of nn.Lazy*, which torch cannot make on shapes "
            "alone; make the model before, and call it once on an input."
        ) from error
    if not isinstance(made, nn.Module):
        raise OptionError(
            f"cost_table() is given a {type(made).__name__}, and needs a torch.nn.Module or a function that makes one; "
            "give the model first, then what its forward takes."
        )
    return made


def _options(convention: str, asked: dict[str, str | None]) -> dict[str, str]:
    if str(convention) not in CONVENTIONS:
        raise OptionError(f"convention={convention!r} is not known; {nearest(str(convention), CONVENTIONS)}")
    options = {"convention": convention, **CONVENTIONS[convention]}
    for name, value in asked.items():
        if value is not None:
            if str(value) not in CHOICES[name]:
                raise OptionError(f"{name}={value!r} is not known; {nearest(str(value), CHOICES[name])}")
            options[name] = value
    return options


def _attention(choice: str) -> AbstractContextManager[None]:
    return sdpa_kernel(SDPBackend.MATH) if choice == "math" else nullcontext()


def _run_backward(result: Any) -> None:
    """Runs the backward pass from all that a model returned."""
    outputs = [value for value in tree_leaves(result) if isinstance(value, Tensor) and value.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])


class _NodeRecorder(Recorder):
    """Records the two passes."""

    verb = "cost_table"
