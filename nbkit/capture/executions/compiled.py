"""Runs what torch.compile was given with a backend that runs each op of its graphs by itself."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule

from nbkit.capture.executions.observer import ExecutionObserver
from nbkit.capture.executions.programs import NodeInterpreter


def recompiled(original: Any, observer: ExecutionObserver) -> Callable[..., Any]:
    """Returns a callable that compiles again, for the observer; graphs are numbered as they are first met."""
    if isinstance(original, nn.Module):
        # Of module.compile(); attributes of modules are put back after the run.
        vars(original)["_compiled_call_impl"] = None
    observer.graphs = 0
    compiled: Callable[..., Any] = torch.compile(original, backend=partial(_compiled, observer))
    return compiled


def _compiled(observer: ExecutionObserver, module: GraphModule, inputs: Any) -> Callable[..., Any]:
    """Compiles a graph to a forward and a backward one of aten ops, which are interpreted."""
    from torch._dynamo.backends.common import aot_autograd

    name = f"graph {observer.graphs}"
    observer.graphs = (observer.graphs or 0) + 1
    compiler = aot_autograd(
        fw_compiler=partial(_interpreted, observer, f"{name}/", "forward"),
        bw_compiler=partial(_interpreted, observer, f"{name} backward/", "backward"),
    )
    compiled: Callable[..., Any] = compiler(module, inputs)
    return compiled


def _interpreted(
    observer: ExecutionObserver, prefix: str, phase: str, module: GraphModule, inputs: Any
) -> Callable[..., Any]:
    def run(args: list[Any]) -> Any:
        given = (*args,)
        args.clear()  # what only the graph needs lives no longer than that
        return NodeInterpreter(module, observer, prefix, phase).run(*given)

    run._boxed_call = True  # type: ignore[attr-defined]  # AOTAutograd hands over a list that may be emptied
    return run
