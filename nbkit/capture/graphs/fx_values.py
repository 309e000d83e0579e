"""Reads an FX node: its value's tensors and sizes, its arguments, module path and source line."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

from nbkit.capture.frames.tensor_rows import dtype_text
from nbkit.capture.raw.source import is_user_file, line_text

FRAME = re.compile(r'^ *File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9})\b', re.MULTILINE)
# What dynamo calls a module: L['self']._modules['layers'] and L['self'].layers[0].
DYNAMO_ROOT, DYNAMO_PIECE = re.compile(r"^[LG]\['[^']*'\]"), re.compile(r"(?:\._modules)?\['?([^'\]]*)'?\]")
PHASES = {"is_forward": "forward", "is_backward": "backward", "must_be_in_backward": "backward"}


def value_of(node: Node) -> Any:
    """Returns the example value, fake or described, that torch keeps of a node's result; None if it keeps none."""
    for name in ("val", "example_value", "tensor_meta"):
        if (value := node.meta.get(name)) is not None:
            return value
    return None


def tensor_columns(value: Any) -> dict[str, Any]:
    """Returns dtype, shape and device of a tensor, or of the first tensor in a list; leaves out unknown ones."""
    if isinstance(value, list | tuple) and not hasattr(value, "dtype"):
        value = next((item for item in value if hasattr(item, "dtype")), None)
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return {}
    columns: dict[str, Any] = {"dtype": dtype_text(value.dtype)}
    if isinstance(value, Tensor):
        columns["device"] = str(value.device)
        if value.is_nested:
            return columns
    return columns | {"shape": [int(size) if type(size) is int else None for size in value.shape]}


def symbolic_sizes(value: Any) -> list[str] | None:
    """Returns the sizes of a tensor as text, where one of them is a symbol."""
    if not isinstance(value, Tensor) or value.is_nested or all(type(size) is int for size in value.shape):
        return None
    return [str(size) for size in value.shape]


def sizes(tensor: Any) -> dict[str, int | None]:
    """Returns numel and size_bytes of a tensor of known sizes, else nulls."""
    known = tensor_columns(tensor).get("shape")
    if known is None or None in known:
        return {"numel": None, "size_bytes": None}
    numel = 1
    for size in known:
        numel *= size
    return {"numel": numel, "size_bytes": numel * tensor.dtype.itemsize}


def named_arguments(node: Node) -> Iterator[tuple[str | None, Any]]:
    """Yields arguments in call order with the names that the op's schema has for them."""
    names = [argument.name for argument in node.target._schema.arguments] if isinstance(node.target, OpOverload) else []
    for position, argument in enumerate(node.args):
        yield names[position] if position < len(names) else None, argument
    yield from node.kwargs.items()


def nodes_in(argument: Any) -> list[Node]:
    """Returns the FX nodes of an argument, lists flattened."""
    nodes: list[Node] = []
    torch.fx.map_arg(argument, nodes.append)
    return nodes


def written(node: Node) -> list[tuple[Node, int | None]]:
    """Returns nodes whose value an op overwrites, each with the port on which it comes back, if it does."""
    if not isinstance(node.target, OpOverload):
        return []
    schema = node.target._schema
    ports = {frozenset(out.alias_info.before_set): port for port, out in enumerate(schema.returns) if out.alias_info}
    arguments = dict(named_arguments(node))
    overwritten = []
    for argument in schema.arguments:
        if argument.alias_info is not None and argument.is_write:
            port = ports.get(frozenset(argument.alias_info.before_set))
            overwritten += [(written_node, port) for written_node in nodes_in(arguments.get(argument.name))]
    return overwritten


def plain(argument: Any) -> Any:
    """Returns an argument as JSON data: nodes by name, torch's words as text."""
    if isinstance(argument, Node):
        return f"%{argument.name}"
    if isinstance(argument, list | tuple):
        return [plain(item) for item in argument]
    if isinstance(argument, Mapping):
        return {str(name): plain(item) for name, item in argument.items()}
    if argument is None or isinstance(argument, bool | int | float | str):
        return argument
    return str(argument).removeprefix("torch.")


def module_stack(node: Node) -> list[tuple[str, str, str]]:
    """Returns the modules around a node from the root on: path, class and what tells this call of it from others.

    A backward node of a joint graph belongs where its forward node ran.
    """
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    modules = []
    for key, (path, kind) in stack.items():
        if key.startswith("_empty_nn_module_stack"):
            continue
        path, _, repeat = str(path).partition("@")
        if root := DYNAMO_ROOT.match(path):
            path = DYNAMO_PIECE.sub(r".\1", path[root.end() :]).strip(".")
        name = kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
        modules.append((path, name, repeat or key.partition("@")[2]))
    return modules


def source_line(node: Node) -> str | None:
    """Returns the innermost line outside torch of the stack trace that a node keeps."""
    for file, line in reversed(FRAME.findall(node.meta.get("stack_trace") or "")):
        if is_user_file(file) and not file.startswith("torch/"):  # as some passes of torch.fx write it
            return line_text(file, int(line))
    return None


def phase(node: Node) -> str | None:
    """Returns forward or backward, where torch has said so for splitting a joint graph."""
    return PHASES.get(node.meta.get("partitioner_tag", ""))
