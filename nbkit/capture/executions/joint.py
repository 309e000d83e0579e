"""Exports a module with its backward pass as one graph, whose outputs are what it returns and the gradients."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec
from torch.utils._pytree import tree_structure

from nbkit.capture.executions.names import named_outputs, returning
from nbkit.capture.executions.torch_execution import NO_GRADIENT, loss_of
from nbkit.errors import OptionError

GRADIENTS = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)


def joint_program(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[ExportedProgram, list[str]]:
    """Returns the program of forward and backward, and what the gradients behind its other outputs are called.

    Its first output is the loss, which is that of opalign: what the module returns under this name, else a mean. Raises
    OptionError where nothing requires a gradient.
    """
    try:
        from torch.export.experimental import _export_forward_backward
    except ImportError as error:  # a private name, as torch has no public one
        raise OptionError(
            f"torch {torch.__version__} cannot export a backward pass: leave backward out, or use torch 2.13."
        ) from error

    with returning(module, _with_loss), torch.enable_grad():
        program = torch.export.export(module, tuple(args), dict(kwargs))
        try:
            joint = _export_forward_backward(program, joint_loss_index=0)
        except AssertionError as error:
            if "did not receive a gradient" not in str(error):
                raise
            _freeze_unread(program)
            joint = _export_forward_backward(program, joint_loss_index=0)
    signature = joint.graph_signature
    kinds, targets = zip(*((spec.kind, spec.target) for spec in signature.output_specs), strict=True)
    names = [target for kind, target in zip(kinds, targets, strict=True) if kind is GRADIENTS[0]]
    names += _differentiable(program)
    if len(names) != sum(kind in GRADIENTS for kind in kinds):
        raise OptionError("torch does not say which of its inputs the gradients are of; run it without backward.")
    # torch.onnx.export makes outputs of user outputs alone, so loss and gradients are declared as such.
    user = (OutputKind.LOSS_OUTPUT, OutputKind.USER_OUTPUT, *GRADIENTS)
    signature.output_specs[:] = [
        OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None) if spec.kind in user else spec
        for spec in signature.output_specs
    ]
    call = joint.module_call_graph[0].signature
    assert call is not None
    call.out_spec = tree_structure((0,) * sum(kind in user for kind in kinds))
    return joint, [f"grad of {name}" for name in names]


def _differentiable(program: ExportedProgram) -> list[str]:
    """Returns the names of the inputs of a call that require a gradient, in their order."""
    inputs = set(program.graph_signature.user_inputs)
    return [name for name, value in _given(program) if name in inputs and value.requires_grad]


def _given(program: ExportedProgram) -> list[tuple[str, Tensor]]:
    """Returns the tensors without values that stand for parameters, buffers and inputs; torch asks these."""
    values = [(node.name, node.meta.get("val")) for node in program.graph.nodes if node.op == "placeholder"]
    return [(name, value) for name, value in values if isinstance(value, Tensor)]


def _freeze_unread(program: ExportedProgram) -> None:
    """Has what the loss is not made of require no gradient: torch wants one of each, and opalign has none of these."""
    decomposed = program.run_decompositions({})  # no op writes into another's result any more
    nodes = {node.name: node for node in decomposed.graph.nodes}
    waiting, read = [nodes[str(decomposed.graph_signature.user_outputs[0])]], set[str]()
    while waiting:
        node = waiting.pop()
        if node.name not in read:
            read.add(node.name)
            waiting += node.all_input_nodes
    for name, value in _given(program):
        if name not in read and value.requires_grad:
            value.requires_grad_(False)


def _with_loss(out: Any) -> tuple[Tensor, ...]:
    """Returns the loss, then all other tensors without their graph: torch takes the gradient of one output alone."""
    loss = loss_of(out)
    if loss is None:
        raise OptionError(NO_GRADIENT)
    return (loss, *(tensor.detach() for _, tensor in named_outputs(out)))
