"""Describes the inputs and outputs of an exported program: parameters, buffers, constants, changed state."""

from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec
from torch.fx import Node

from nbkit.capture.graphs.fx_values import value_of
from nbkit.compat.torch_versions import PARAMETER_MUTATIONS

KINDS = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.CUSTOM_OBJ: "constant",
}
CHANGED = {
    OutputKind.BUFFER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
    *PARAMETER_MUTATIONS,
}


@dataclass(frozen=True)
class GraphInput:
    """Describes an input of a graph: kind, name to give it, module that holds it, its value if the program has it."""

    kind: str
    name: str
    module: str | None = None
    value: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)


def inputs_of(program: ExportedProgram) -> dict[str, GraphInput]:
    """Returns the inputs of a program's graph, by the names of their placeholders."""
    first: dict[int, str] = {}
    return {spec.arg.name: _graph_input(program, spec, first) for spec in program.graph_signature.input_specs}


def _graph_input(program: ExportedProgram, spec: InputSpec, first: dict[int, str]) -> GraphInput:
    kind = KINDS.get(spec.kind, "input")
    if kind == "input" or spec.target is None:
        return GraphInput("input", spec.arg.name)
    value = program.state_dict.get(spec.target, program.constants.get(spec.target))
    attributes: dict[str, Any] = {} if spec.persistent is not False else {"persistent": False}
    if kind == "parameter" and value is not None and not value.requires_grad:
        attributes["requires_grad"] = False
    if value is not None and first.setdefault(id(value), spec.target) != spec.target:
        attributes["same_as"] = first[id(value)]
    module = None if kind == "constant" else spec.target.rpartition(".")[0]
    return GraphInput(kind, spec.target, module, value, attributes)


def unsigned_input(node: Node) -> GraphInput:
    """Describes an input of a graph without a signature: dynamo keeps the parameters of a model as such."""
    value = value_of(node)
    return GraphInput("parameter" if isinstance(value, nn.Parameter) else "input", node.name)


def changed_by(program: ExportedProgram) -> list[dict[str, Any]]:
    """Returns for each output of a program's graph which buffer or input it is the new value of."""
    return [_output_facts(spec) for spec in program.graph_signature.output_specs]


def _output_facts(spec: OutputSpec) -> dict[str, Any]:
    if spec.kind in CHANGED:
        return {"new_value_of": spec.target}
    return {} if spec.kind is OutputKind.USER_OUTPUT else {"kind": spec.kind.name.lower(), "target": spec.target}
