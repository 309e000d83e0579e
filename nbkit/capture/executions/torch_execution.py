"""Runs a torch model once and holds what each op computed (torch_execution)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.fx import GraphModule

from nbkit.capture.executions.calls import Calls
from nbkit.capture.executions.names import named_inputs, named_outputs, plain_outputs
from nbkit.capture.executions.observer import ExecutionObserver
from nbkit.capture.executions.programs import NodeInterpreter, RunsProgram, interpret, write_graph
from nbkit.capture.executions.rows import completed
from nbkit.capture.executions.state import LeftAsItWas
from nbkit.capture.executions.unrecorded import not_fused, with_returned, without_limits
from nbkit.capture.recorder.recorder import Recorder
from nbkit.compat.torch_versions import original_of
from nbkit.errors import OptionError, first_line
from nbkit.schema import OPS
from nbkit.trace.executions.execution import Collector, Execution
from nbkit.trace.executions.values import KEPT_BYTES, Values
from nbkit.trace.trace import Trace

NO_GRADIENT = "Nothing was backpropagated: no output requires a gradient."


class ExecutionRecorder(Recorder):
    """Records the step of an execution."""

    verb = "opalign"


def torch_execution(
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    kept_bytes: int = KEPT_BYTES,
    name: str | None = None,
    dump: Path | None = None,
) -> Execution:
    """Runs a model once, under a recorder, and returns the results of all its aten ops with their values.

    Gradients, random numbers, attributes of modules and all memory that the run writes to are put back afterwards. An
    exception of the model ends the run early; `error` says which.

    Args:
        target: a module, another callable on tensors, an ExportedProgram or GraphModule, whose results are named by
            their nodes, or what torch.compile has made, which is compiled once more to graphs of aten ops.
        args: what it is called with.
        kwargs: by name.
        backward: backpropagates the loss that it returns, else the mean of its first floating output; gradients are
            outputs named "grad of PATH".
        kept_bytes: keeps values up to this size in all; the other results have features only.
        name: what the execution is called where it is shown.
        dump: a folder that gets the graphs of torch.compile, each with its inputs.

    Raises:
        OptionError: for what cannot be called.
    """
    kwargs = dict(kwargs or {})
    _check(target, args)
    name = name or _name(target)
    observer = ExecutionObserver(Collector(Values(kept_bytes)))
    observer.dump = dump
    original = original_of(target)
    model = target if original is None else original
    observer.model = model if isinstance(model, nn.Module) else None
    step = _Step(observer, backward)
    around = LeftAsItWas(observer, args, kwargs)
    with around, without_limits():
        if isinstance(target, ExportedProgram) and not backward:
            return _directly(step, target, args, kwargs, name)
        run = _runner(target, original, observer)
        recorder = ExecutionRecorder(observer, name=name)
        with not_fused() if original is None else nullcontext(), suppress(Exception), recorder:
            if not isinstance(target, ExportedProgram):
                step.given(model, args, kwargs)
            step.run(run, args, kwargs)
    trace = recorder.trace
    assert trace is not None
    found = step.execution(name, trace.ops, _error_text(trace))
    if isinstance(target, ExportedProgram):
        return found
    with without_limits(), torch.enable_grad() if backward else nullcontext():
        return with_returned(found, observer.calls, partial(target, *args, **kwargs), around)


class _Step:
    """Runs the target and collects what becomes of it."""

    def __init__(self, observer: ExecutionObserver, backward: bool) -> None:
        self.observer, self.backward = observer, backward
        self.outputs: dict[str, int] = {}
        self.gradients: dict[int, int] = {}  # of the result of a leaf that of its gradient
        self.notes: list[str] = []
        self.plain: dict[str, Any] = {}

    def given(self, target: Any, args: Any, kwargs: Any) -> None:
        """Adds the tensors that the target is given."""
        for name, tensor in named_inputs(target, args, kwargs):
            self.observer.add_given("input", name, tensor)

    def run(self, run: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Runs forward and backward."""
        with torch.enable_grad() if self.backward else nullcontext():
            out = run(*args, **kwargs)
            self.outputs = {each: self.observer.read(tensor) for each, tensor in named_outputs(out)}
            self.plain = plain_outputs(out)
            if self.backward:
                self.gradients, notes = backpropagate(out, self.observer)
                self.notes += notes

    def execution(self, name: str, ops: pd.DataFrame, error: str | None) -> Execution:
        """Returns what was collected."""
        observer, values = self.observer, self.observer.collector.values
        results = list(completed(observer.collector.results, observer, ops))
        outputs = dict(self.outputs)
        for leaf, gradient in self.gradients.items():
            outputs[f"grad of {results[leaf].name}"] = gradient
            if results[gradient].kind == "op" and gradient not in self.outputs.values():
                results[gradient] = replace(results[gradient], name=f"grad of {results[leaf].name}")
        for call in observer.calls:
            call.place = None  # it holds the graph
        notes = (*self.notes, *observer.notes())
        calls = Calls(observer.calls, values)
        run = Execution(name, "torch", tuple(results), outputs, values, calls, error, notes)
        return replace(run, gradients=dict(self.gradients), plain=self.plain)


def _directly(step: _Step, program: ExportedProgram, args: Any, kwargs: Any, name: str) -> Execution:
    """Runs each node of a program as one call, also one of an op that is made of others."""
    observer, error = step.observer, None
    try:
        step.run(RunsProgram(program, observer, observer.run_direct), args, kwargs)
    except Exception as failure:
        error = f"The run ended early{observer.where()} with {type(failure).__name__}: {first_line(failure)}"
    return step.execution(name, OPS.frame(), error)


def _runner(target: Any, original: Any, observer: ExecutionObserver) -> Callable[..., Any]:
    """Returns what runs in place of the target, so that the observer sees all ops of it."""
    if isinstance(target, ExportedProgram):
        return RunsProgram(target, observer)
    if original is not None:
        return recompiled(original, observer)
    if isinstance(target, GraphModule):
        interpret(target, observer)
    run: Callable[..., Any] = target
    return run


def _check(target: Any, args: Any) -> None:
    if not callable(target) or (isinstance(target, type)):
        raise OptionError(f"A {type(target).__name__} cannot be run; give a module, a function or an exported program.")
    if not isinstance(args, list | tuple):
        raise OptionError(f"args is a {type(args).__name__}; give a tuple of the arguments.")


def _error_text(trace: Trace) -> str | None:
    """Returns the sentence for a run that ended early."""
    error = trace.meta["error"]
    if error is None:
        return None
    reason = f"{error['type']}: {first_line(Exception(error['message']))}"
    if error["op_id"] is None:
        return f"The run ended early with {reason}"
    failed = trace.ops.iloc[error["op_id"]]
    where = f" in module {failed['module']}" if isinstance(failed["module"], str) and failed["module"] else ""
    return f"The run ended early at {failed['op']}{where} with {reason}"


def _name(target: Any) -> str:
    target = original_of(target) or target
    return getattr(target, "__name__", None) or type(target).__name__


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
        if observer.dump is not None:
            names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
            write_graph(observer.dump, prefix.removesuffix("/"), module, dict(zip(names, given, strict=True)))
        args.clear()  # what only the graph needs lives no longer than that
        return NodeInterpreter(module, observer, prefix, phase).run(*given)

    run._boxed_call = True  # type: ignore[attr-defined]  # AOTAutograd hands over a list that may be emptied
    return run


def backpropagate(out: Any, observer: ExecutionObserver) -> tuple[dict[int, int], list[str]]:
    """Returns of each leaf's result the result of its gradient, and a note where there is nothing to differentiate."""
    loss = loss_of(out)
    leaves = observer.leaves
    if loss is None or not leaves:
        return {}, [NO_GRADIENT]
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    pairs = zip(leaves, gradients, strict=True)
    return {leaf: observer.read(gradient) for leaf, gradient in pairs if gradient is not None}, []


def loss_of(out: Any) -> Tensor | None:
    """Returns the loss that a model returns under this name, else the mean of its first output with a gradient."""
    named = [(name, tensor) for name, tensor in named_outputs(out) if tensor.requires_grad]
    floats = [tensor for _, tensor in named if tensor.is_floating_point()]
    losses = [tensor for name, tensor in named if name == "loss"]
    if not losses and not floats:
        return None
    chosen = (losses or floats)[0]
    return chosen if chosen.numel() == 1 else chosen.mean()
