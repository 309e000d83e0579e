"""Turns names of events from what the profiler writes into `op` and `level`."""

import re

DISPATCHER_CALL = re.compile(r"\w+::\w+")
PYTHON_CALL = re.compile(r"torch(\.\w+)+")
OPTIMIZER_CALL = re.compile(r"Optimizer\.(step|zero_grad)#(.+)\.\1")
BACKWARD_NODE = "autograd::engine::evaluate_function: "
ACCUMULATION = f"{BACKWARD_NODE}torch::autograd::AccumulateGrad"
BACKWARD_CALLS = ("torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad")
ROOT = "step"
# What optime puts where a checkpoint ends what it computes again.
STOP_MARK = "torch.utils.checkpoint stops"
# What torch.compile's regions are called, forward and backward; the last is torch.profiler's own.
COMPILED_REGION = re.compile(r"Torch-Compiled Region: .*|CompiledFunction(Backward)?\d*|## Call CompiledFxGraph .*")
# Their fused kernels on the CPU, where inductor has been told to name them.
FUSED_KERNEL = re.compile(r"graph_\d+_cpp_\w+|cpp_fused_\w+")


def op_and_level(name: str, overload: str | None) -> tuple[str, str]:
    """Returns `op` and `level` of a host event: aten.mm.default of aten::mm, torch.optim.AdamW.step of its range."""
    if DISPATCHER_CALL.fullmatch(name):
        suffix = "" if overload is None else f".{overload or 'default'}"
        return name.replace("::", ".") + suffix, "aten"
    if FUSED_KERNEL.fullmatch(name):
        return name, "aten"
    if called := OPTIMIZER_CALL.fullmatch(name):
        return f"torch.optim.{called[2]}.{called[1]}", "api"
    return name, "api" if is_python_call(name) else "range"


def is_python_call(name: str) -> bool:
    return PYTHON_CALL.fullmatch(name) is not None


def block_and_level(name: str) -> tuple[str, str]:
    """Returns `op` and `level` of a block that was named by hand; only an optimizer's range is more than that."""
    return op_and_level(name, None) if is_optimizer_call(name) else (name, "range")


def is_optimizer_call(name: str) -> bool:
    return OPTIMIZER_CALL.fullmatch(name) is not None


def is_optimizer_step(name: str) -> bool:
    called = OPTIMIZER_CALL.fullmatch(name)
    return called is not None and called[1] == "step"
