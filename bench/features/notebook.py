"""Features of the notebook kit itself."""

import torch

import nbkit
from bench.features.registry import feature


@feature("notebook", "frames of a trace", "`with nbkit.optrace() as trace:`, `trace.ops`")
def frames() -> None:
    """The ops are those of torch's profiler, in their order."""
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()), torch.randn(2, 4)
    with nbkit.optrace() as trace, torch.no_grad():
        model(x)
    with torch.profiler.profile() as profiler, torch.no_grad():
        model(x)
    kinds = ("aten::addmm", "aten::gelu")
    seen = [event.name for event in profiler.events() if event.name in kinds]
    assert [f"aten::{op.split('.')[1]}" for op in trace.ops["op"] if f"aten::{op.split('.')[1]}" in kinds] == seen
