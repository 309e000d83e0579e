"""Turns a module into what torch.export or torch.compile makes of it; exports it to ONNX, with its inputs by name."""

import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument
from torch.utils._pytree import tree_leaves

from nbkit.capture.executions.joint import joint_program
from nbkit.capture.executions.names import returning_tensors
from nbkit.errors import OptionError, first_line

Array = npt.NDArray[np.generic]
# The exporter's own words, which stand before the reason and say nothing of it.
HEADLINES = (
    "failed to",
    "exception summary",
    "(refer to",
    "## ",
    "this is step",
    "- run",
    "- create",
    "- debug",
    "- if",
)


def exported_onnx(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    optimize: bool = True,
    opset: int | None = None,
    backward: bool = False,
) -> tuple[Any, dict[str, Array]]:
    """Returns the ModelProto that torch.onnx.export(dynamo=True) makes of a module, and the inputs of it by name.

    `optimize` lets the exporter fold constants and fuse what it can. With `backward`, the graph has the backward pass,
    too, and its gradients are outputs named "grad of PATH". bfloat16 inputs come as float32, complex ones as pairs of
    real numbers in a further axis, as the exported model has them. Raises OptionError in one sentence if onnxscript is
    missing, if the module or this opset cannot be exported, or if an input of the model belongs to no argument.
    """
    name = type(module).__name__
    gradients: list[str] = []

    def export() -> Any:
        target: Any = module
        with _muted():
            if backward:
                target, gradients[:] = joint_program(module, args, kwargs or {})
            return torch.onnx.export(
                target,
                () if backward else args,
                kwargs={} if backward else dict(kwargs or {}),
                dynamo=True,
                verbose=False,
                optimize=optimize,
                opset_version=opset,
            )

    program = _exported_in_any_way(module, export)
    if program is None:
        raise OptionError(f"torch.onnx.export returned nothing for {name}; is dynamo=True supported by this torch?")
    if backward:
        _name_gradients(program.model.graph, gradients)
    proto = program.model_proto
    made = next((each.version for each in proto.opset_import if each.domain == ""), None)
    if opset is not None and made != opset:
        raise OptionError(
            f"torch.onnx.export made opset {made} of {name}: it cannot write opset {opset}; give another."
        )
    return proto, _named_inputs(program, name)


def _exported_in_any_way(module: torch.nn.Module, export: Callable[[], Any]) -> Any:
    """Returns what the exporter makes of a module, at the second try of its tensors alone. Raises OptionError."""
    name = type(module).__name__
    try:
        try:
            return export()
        except (ImportError, OptionError):
            raise
        except Exception:
            with returning_tensors(module):
                return export()
    except ImportError as error:
        raise OptionError(
            f"Exporting {name} needs the packages onnx and onnxscript: pip install 'nbkit-torch[onnx]'."
        ) from error
    except OptionError:
        raise
    except Exception as error:  # the exporter hands on whatever the module raised, or its own kinds
        raise OptionError(
            f"torch.onnx.export cannot export {name}: {_reason(error)}; give a module that torch.export can trace."
        ) from error


def _name_gradients(graph: Any, gradients: Sequence[str]) -> None:
    """Names the last outputs of a joint graph, and leaves out the first: the loss, which is no output of the model."""
    for value, name in zip(graph.outputs[len(graph.outputs) - len(gradients) :], gradients, strict=True):
        value.name = name
    del graph.outputs[0]


@contextmanager
def _muted() -> Iterator[None]:
    """Lets nothing through of what is printed, logged or warned."""
    level = logging.root.manager.disable
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(max(level, logging.WARNING))
        try:
            yield
        finally:
            logging.disable(level)


def _reason(error: BaseException) -> str:
    """Returns the first line that says why, from the innermost error that says it."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if not line.lower().startswith(HEADLINES)]
    return (said[0] if said else first_line(error)).rstrip(".;:")


def _named_inputs(program: Any, name: str) -> dict[str, Array]:
    """Returns the tensors of the call for the inputs of the model, by the names that torch.export gave to them."""
    exported = program.exported_program
    wanted = [value.name for value in program.model.graph.inputs]
    if exported is None or exported.example_inputs is None:
        raise OptionError(
            f"The exporter does not say what the inputs of {name} are: give them by name to the ONNX model."
        )
    specs = [spec for spec in exported.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    leaves = tree_leaves(exported.example_inputs)
    if len(specs) != len(leaves):
        raise OptionError(
            f"{name} was called with {len(leaves)} values and exported with {len(specs)} inputs, so they cannot be "
            "paired: give the inputs by name to the ONNX model."
        )
    found = {
        spec.arg.name: _numpy(leaf)
        for spec, leaf in zip(specs, leaves, strict=True)
        if isinstance(spec.arg, TensorArgument) and isinstance(leaf, torch.Tensor)
    }
    if absent := [one for one in wanted if one not in found]:
        raise OptionError(
            f"The exported {name} has inputs that belong to no tensor of the call: {', '.join(map(repr, absent))}; "
            f"the tensors are {', '.join(map(repr, found)) or 'none'}."
        )
    return {one: found[one] for one in wanted}


def _numpy(tensor: torch.Tensor) -> Array:
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    try:
        return np.array(tensor.numpy(), copy=True)
    except TypeError:  # bfloat16 and float8, which numpy does not have
        return np.array(tensor.float().numpy(), copy=True)


def exported(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ExportedProgram:
    """Returns the program of a module, decomposed to core ops. Raises OptionError if it cannot be exported."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"only a module can be exported, and this is a {type(model).__name__}.")
    try:
        return _exported(model, args, kwargs)
    except Exception:
        try:
            with returning_tensors(model):
                return _exported(model, args, kwargs)
        except Exception as error:
            reason = first_line(error)
            raise OptionError(f"{type(model).__name__} cannot be exported by torch.export: {reason}") from error


def _exported(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's own words to its developers
        program: ExportedProgram = torch.export.export(model, tuple(args), dict(kwargs)).run_decompositions()
    return program


def compiled(model: Any) -> Any:
    """Returns the compiled model, which is compiled when it runs."""
    return torch.compile(model)
