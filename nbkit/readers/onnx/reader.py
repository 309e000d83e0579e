"""Reads ONNX models as a Trace: the main graph, branches and loop bodies, functions; no weights are kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbkit.errors import TraceError
from nbkit.readers.onnx import metadata as exporter
from nbkit.readers.onnx.graph import DEFAULT_DOMAINS, GraphReader, Reading
from nbkit.readers.reader import Head, Reader
from nbkit.readers.text_file import cannot_read
from nbkit.trace.trace import Trace

if TYPE_CHECKING:
    from onnx import ModelProto
# ir_version, then producer, domain, model version, documentation, graph or opsets: how every writer begins a file.
HEAD = re.compile(rb"\x08[\x01-\x3f][\x12\x1a\x22\x28\x32\x3a\x42]")
SUFFIX = ".onnx"
EXPECTED = "expected a model that onnx.save() or torch.onnx.export() wrote"


def looks_like(head: Head) -> bool:
    """Returns whether a file begins as an ONNX model does, or has the name of one."""
    return HEAD.match(head.raw) is not None or head.name.endswith(SUFFIX)


def read_onnx_model(path: str | Path) -> Trace:
    """Returns the graphs of an ONNX model, in the frames nodes, edges, graph_tensors and modules.

    Initializers are nodes: parameters and buffers where the exporter says so; of other exporters those with several
    floating-point numbers are parameters, others constants. Module paths, classes and source lines are those that
    torch.onnx.export left. A graph inside a node is a further graph, and so is each function; what such a graph takes
    from around it, its node reads. External data are not opened. Needs the package onnx. Raises TraceError if that is
    missing, or if the file is absent, cut off, damaged or of another kind.
    """
    path = Path(path)
    model = _parsed(path, _data(path))
    size = model.ByteSize()
    model.DiscardUnknownFields()
    unknown = size - model.ByteSize()
    mended = mend_texts(model)
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    opsets |= {domain: opsets[alias] for domain in DEFAULT_DOMAINS for alias in DEFAULT_DOMAINS if alias in opsets}
    is_torch = model.producer_name == "pytorch"
    reading = Reading(opsets, is_torch, exporter.signature_of(exporter.metadata(model.graph)))
    try:
        GraphReader(reading, model.graph.name or "graph").read_graph(model.graph)
        for function in model.functions:
            GraphReader(reading, f"function {function.domain}.{function.name}").read_function(function)
    except RecursionError as error:
        raise TraceError(f"{path} has graphs inside graphs, deeper than can be read; {EXPECTED}.") from error
    frames = {**reading.rows.frames(), "modules": reading.modules.frame(model.graph.name or path.stem)}
    return Trace(frames, _meta(path, model, reading, [*_notes(model, unknown, mended), *reading.rows.notes()]))


def parsed_file(path: Path) -> ModelProto:
    """Returns the model of a file, without external data. Raises TraceError, as read_onnx_model."""
    return _parsed(path, _data(path))


def _data(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from error


def _parsed(path: Path, data: bytes) -> ModelProto:
    try:
        import onnx
    except ImportError as error:
        raise TraceError(
            f"{path} is an ONNX model, and the package onnx is not installed: pip install 'nbkit-torch[onnx]'."
        ) from error
    try:
        model: ModelProto = onnx.ModelProto.FromString(data)
    except Exception as error:
        # The class is protobuf's, which is no package of ours to import.
        if type(error).__name__ != "DecodeError":
            raise
        raise TraceError(f"{path} is no ONNX model, or it is cut off or damaged; {EXPECTED}.") from error
    if not model.ir_version or not model.opset_import or not (model.graph.node or model.graph.output):
        raise TraceError(f"{path} has no ONNX graph, or it is cut off; {EXPECTED}.")
    return model


def _meta(path: Path, model: ModelProto, reading: Reading, notes: list[str]) -> dict[str, Any]:
    opsets = {opset.domain or "ai.onnx": opset.version for opset in model.opset_import}
    external = sorted(
        {entry.value for item in model.graph.initializer for entry in item.external_data if entry.key == "location"}
    )
    unknown = sorted(reading.domains - set(reading.opsets))
    return {
        "verb": "opgraph",
        "name": path.name,
        "created": None,
        "source": f"ONNX: IR {model.ir_version}, opset {opsets.get('ai.onnx', 'none')}",
        "complete": not unknown,
        "error": None,
        "skipped_lines": [],
        "notes": [*_undeclared(unknown), *notes],
        "onnx": {
            "graph": model.graph.name,
            "ir_version": model.ir_version,
            "opsets": opsets,
            "producer": f"{model.producer_name} {model.producer_version}".strip(),
            "domain": model.domain,
            "model_version": model.model_version,
            "doc_string": model.doc_string,
            "metadata": exporter.metadata(model),
            "functions": [f"{item.domain}.{item.name}" for item in model.functions],
            "external_data": external,
            "absent_parameters": _absent(model, reading),
        },
    }


def _undeclared(domains: list[str]) -> list[str]:
    if not domains:
        return []
    names = ", ".join(map(repr, domains))
    return [f"The file has ops of {names}, but does not say of which version: it may be cut off."]


def _notes(model: ModelProto, unknown: int, mended: int) -> list[str]:
    notes = []
    if unknown:
        notes.append(
            f"{unknown:,} bytes are of fields that ONNX does not have, and were left out: the file may be damaged, or "
            "of a later version than the package onnx that is installed."
        )
    if mended:
        notes.append(f"{mended:,} texts are not UTF-8; what could not be decoded is U+FFFD.")
    if model.graph.node and not model.graph.value_info:
        notes.append(
            "The file has no shapes of values inside the graph; onnx.shape_inference.infer_shapes_path() adds them."
        )
    return notes


def _absent(model: ModelProto, reading: Reading) -> list[str]:
    """Returns parameters of the exported program that the file lacks: part of constants now, or equal to another."""
    present = {item.name for item in model.graph.initializer}
    present |= set(exporter.linear_weights(model.graph.node, reading.signature).values())
    return [target for kind, target in reading.signature.values() if kind == "parameter" and target not in present]


def mend_texts(message: Any) -> int:
    """Mends such texts in a message and all it holds, with U+FFFD for bad bytes; returns their number."""
    count = 0
    for field, value in message.ListFields():
        if field.message_type is not None:
            count += sum(map(mend_texts, value if field.is_repeated else [value]))
        elif field.type == field.TYPE_STRING:
            if not field.is_repeated:
                if isinstance(value, bytes):
                    setattr(message, field.name, _decoded(value))
                    count += 1
                continue
            for position, item in enumerate(value):
                if isinstance(item, bytes):
                    value[position] = _decoded(item)
                    count += 1
    return count


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


ONNX = Reader("an ONNX model", read_onnx_model, of_bytes=looks_like)
