"""Reads what torch.onnx.export leaves in a file about the model: modules, classes, source lines, parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from nbkit.readers.chrome.names import user_line

if TYPE_CHECKING:
    from onnx import GraphProto

SCOPES, CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"
STACK, FX_NODE = "pkg.torch.onnx.stack_trace", "pkg.torch.onnx.fx_node"
SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
INPUT_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
OURS = frozenset({SCOPES, CLASSES, STACK, FX_NODE, "namespace"})
KINDS = {"PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "constant"}
FRAME = re.compile(r'^ *File "([^"\n]+)", line (\d{1,9}), in ([^\n]*)$', re.MULTILINE)
INPUT_SPEC = re.compile(
    r"^([^\s:]+): (PARAMETER|BUFFER|CONSTANT_TENSOR) target='([^\n]*?)'(?: persistent=\w+)?$", re.MULTILINE
)
LINEAR = re.compile(r"target=torch\.ops\.aten\.linear\.default\]\(args = \(%\w+, %(\w+)")
# A list of names is no longer than this; what is longer is no list of the exporter.
LONGEST = 100_000


class Scope(NamedTuple):
    """Says where a node comes from in the model."""

    modules: list[tuple[str, str]]  # path and class of the modules around it, the root first
    torch_op: str | None

    @property
    def module(self) -> str | None:
        return self.modules[-1][0] if self.modules else None


@dataclass(frozen=True)
class Origins:
    """Holds what the exporter left in a graph: where its initializers and nodes come from in the module."""

    is_torch: bool = False
    signature: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    kinds: Mapping[str, str | None] = field(default_factory=dict)  # of initializers, as the exporter writes them
    weights: Mapping[str, str] = field(default_factory=dict)  # paths of parameters by initializers of other names
    metadata: Mapping[str, dict[str, str]] = field(default_factory=dict)  # of nodes, by their outputs

    def initializer(self, name: str, dtype: str | None, numel: int | None) -> tuple[str, str, str | None]:
        """Returns kind, path and module of an initializer.

        It is a parameter if the exporter says so; else if it holds several numbers with a point.
        """
        kind, path = KINDS.get(self.kinds.get(name) or ""), self.weights.get(name) or name
        if kind is None and name in self.weights:
            kind = "parameter"
        if kind is None:
            is_number = str(dtype).startswith(("float", "bfloat"))
            is_unlisted = bool(self.signature) and not self.kinds.get(name)
            kind = "parameter" if is_number and not is_unlisted and (numel or 0) > 1 else "constant"
        is_in_module = kind != "constant" and ("." in path or bool(self.signature))
        return kind, path, path.rpartition(".")[0] if is_in_module else None


def origins_of(graph: GraphProto, is_torch: bool, signature: Mapping[str, tuple[str, str]]) -> Origins:
    """Returns what the exporter left in a graph of a model with this signature."""
    kinds = {value.name: metadata(value).get(INPUT_KIND) for value in graph.value_info}
    return Origins(is_torch, signature, kinds, linear_weights(graph.node, signature))


def metadata(of: Any) -> dict[str, str]:
    """Returns the metadata of a model, graph, node or value."""
    return {prop.key: prop.value for prop in of.metadata_props}


def scope_of(entries: Mapping[str, str], name: str, is_torch: bool) -> Scope:
    """Returns the modules around a node: as the exporter lists them, or from the name that its predecessor wrote."""
    if SCOPES in entries:
        paths, classes = names(entries[SCOPES]), names(entries.get(CLASSES, "[]"))
        kinds = [kind.rpartition(".")[2] for kind in classes[:-1]]
        modules = [
            (path.partition("@")[0], kind) for path, kind in zip(paths, [*kinds, *[""] * len(paths)], strict=False)
        ]
        return Scope(modules[:-1], classes[-1] if classes else None)
    if is_torch and name.startswith("/"):
        pieces = name.split("/")[1:-1]
        return Scope([(".".join(pieces[:end]), "") for end in range(len(pieces) + 1)], None)
    return Scope([], None)


@cache
def names(text: str) -> list[str]:
    """Returns the texts of a list as Python writes one; nothing where it is no such list."""
    if len(text) > LONGEST:
        return []
    try:
        items = ast.literal_eval(text)  # literals only: nothing in it can run
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []


@cache
def source_of(stack: str) -> str | None:
    """Returns the innermost line outside torch of a stack trace, as `path/file.py:12`."""
    for file, line, function in reversed(FRAME.findall(stack)):
        if result := user_line(f"{file}({line}): {function}"):
            return result
    return None


def signature_of(entries: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Returns kind and path of the parameters, buffers and constants of the exported program, by their placeholders."""
    inputs = INPUT_SPEC.findall(entries.get(SIGNATURE, ""))
    return {placeholder: (KINDS[kind], target) for placeholder, kind, target in inputs}


def linear_weights(nodes: Iterable[Any], signature: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Returns paths of linear layers' weights by the constants that the exporter's optimizer transposed them into.

    A product that was made of aten.linear has that layer's weight as its second factor, under whatever name.
    """
    result: dict[str, str] = {}
    for node in nodes:
        made_of = LINEAR.search(metadata(node).get(FX_NODE, "")) if node.op_type in ("MatMul", "Gemm") else None
        kind, path = signature.get(made_of[1], ("", "")) if made_of else ("", "")
        if kind == "parameter":
            result.setdefault(node.input[1], path)
    return result
