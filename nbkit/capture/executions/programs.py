"""Runs FX graphs node by node, so that results have the names, modules and lines of their nodes."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree

from nbkit.capture.executions.arrays import array_of
from nbkit.capture.executions.calls import Place
from nbkit.capture.executions.observer import ExecutionObserver
from nbkit.capture.graphs.fx_inputs import inputs_of
from nbkit.capture.replay.copies import tensors_in
from nbkit.trace.executions.arrays import write_arrays


class NodeInterpreter(Interpreter):
    """Tells the observer which node runs, and names its results by it.

    `call` runs an op; `prefix` stands before the names of nodes, `phase` is that of a compiled graph.
    """

    def __init__(
        self,
        module: GraphModule,
        observer: ExecutionObserver,
        prefix: str = "",
        phase: str | None = None,
        call: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(module)
        self.observer, self.prefix, self.phase, self.call = observer, prefix, phase, call

    def run_node(self, n: Node) -> Any:
        """Runs a node; nodes that only name what others have made or hold add no results."""
        place, outer = Place(n, self.prefix, self.phase), self.observer.place
        self.observer.place = place
        try:
            value = super().run_node(n)
        except Exception:
            self.observer.failed = self.observer.failed or place  # the innermost
            raise
        finally:
            self.observer.place = outer
        if n.op not in ("placeholder", "get_attr", "output"):
            self.observer.name_by(place, list(tensors_in(value)))
        return value

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Runs an op; graphs among the arguments of a higher-order one run node by node, too."""
        if isinstance(target, OpOverload):
            return target(*args, **kwargs) if self.call is None else self.call(target, args, kwargs)
        args = tuple(self._inner(arg) if isinstance(arg, GraphModule) else arg for arg in args)
        return super().call_function(target, args, kwargs)

    def _inner(self, module: GraphModule) -> Callable[..., Any]:
        inner = NodeInterpreter(module, self.observer, self.prefix, self.phase, self.call)

        def run(*args: Any) -> Any:
            return inner.run(*args)

        return run


class RunsProgram:
    """Runs an exported program as a callable: its parameters and buffers are named before its first op."""

    def __init__(
        self, program: ExportedProgram, observer: ExecutionObserver, call: Callable[..., Any] | None = None
    ) -> None:
        self.program, self.observer = program, observer
        self.interpreter = NodeInterpreter(program.graph_module, observer, phase="forward", call=call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = self.program
        flat = program._graph_module_flat_inputs(args, kwargs)
        nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
        known = inputs_of(program)
        named = [(known[node.name], value) for node, value in zip(nodes, flat, strict=True)]
        for given, value in named:
            if isinstance(value, Tensor):
                self.observer.add_given(given.kind, given.name, value)
        results = self.interpreter.run(*flat)
        wanted = set(program.graph_signature.user_outputs)
        specs = program.graph_signature.output_specs
        made = [value for spec, value in zip(specs, results, strict=True) if spec.kind.name == "USER_OUTPUT"]
        assert len(made) >= len(wanted)
        return pytree.tree_unflatten(made, program.call_spec.out_spec)


def interpret(module: GraphModule, observer: ExecutionObserver) -> None:
    """Has the calls of a graph module run node by node, until its attributes are put back."""
    signature = inspect.signature(module.forward)

    def forward(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return NodeInterpreter(module, observer).run(*given.args)

    forward.__signature__ = signature  # type: ignore[attr-defined]
    vars(module)["forward"] = forward


def write_graph(folder: Path, name: str, module: GraphModule, given: Mapping[str, Any]) -> None:
    """Writes a graph as text, and the tensors that it is given by name as .npz; bfloat16 comes as float32."""
    (folder / f"{name}.txt").write_text(module.print_readable(print_output=False), encoding="utf-8")
    arrays = {key: array_of(value) for key, value in given.items() if isinstance(value, Tensor)}
    write_arrays(folder / f"{name}.npz", {key: array for key, array in arrays.items() if array is not None})


def write_program(folder: Path, program: ExportedProgram) -> None:
    """Writes a program as torch.export.save() does, its graph as text, and its inputs."""
    torch.export.save(program, folder / "model.pt2")
    names, values = program.graph_signature.user_inputs, pytree.tree_leaves(program.example_inputs)
    write_graph(folder, "model", program.graph_module, dict(zip(map(str, names), values, strict=True)))
