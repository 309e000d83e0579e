"""Runs a built model with onnxruntime, and turns what it says of a failure into a node and a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nbkit.errors import OptionError
from nbkit.trace.executions.execution import Array

if TYPE_CHECKING:
    from onnx import ModelProto

# How onnxruntime names the node that it means, while it loads and while it runs.
PLACES = (
    re.compile(r"running (?P<op>\S+) node\. Name:'(?P<node>.*?)' Status Message: (?P<reason>.*)", re.DOTALL),
    re.compile(r"Node \((?P<node>.*?)\) Op \((?P<op>\S+?)\) (?P<reason>.*)", re.DOTALL),
    re.compile(r"\(op_type:(?P<op>\S+?), node name: (?P<node>.*?)\):? (?P<reason>.*)", re.DOTALL),
    re.compile(r'In Node, \("(?P<node>.*?)", (?P<op>\S+?), .*?, Error (?P<reason>.*)', re.DOTALL),
    re.compile(r"(?P<reason>Could not find an implementation for (?P<op>\w+)\(\d+\)) node with name '(?P<node>.*?)'"),
    re.compile(r"Fatal error: :?(?P<op>\S+?)\(-?\d+\) (?P<reason>is not a registered function/op)"),
    re.compile(r"(?P<reason>Type.* in node \((?P<node>[^()]*)\).*)", re.DOTALL),
)
CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
# What stands before a reason in the text of C++: a file and a line, then maybe the signature of a function.
IN_SOURCE = re.compile(
    r"^\S*\.(?:h|cc|cpp):\d+ (?:(?:[\w:<>*&~ ]+\(.*?\)(?: const)?(?: \[[^\]]*\])? )|[\w:]+ )?", re.DOTALL
)
BEFORE_IT = re.compile(
    r"^(?:(?:This is an i|I)nvalid model\. |(?:Type )?Error: |\[ShapeInferenceError\] |Exception during [\w ]*: )*"
)
CONDITION = re.compile(r"^.*? was false\.? (?=\w)")
INNERMOST = re.compile(r"^.*Status Message: ", re.DOTALL)
NEW_OPSET = re.compile(r"Opset (\d+) is under development")
NEW_IR = re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)")
LONGEST = 200
UNKNOWN = ("No Op registered", "is not a registered")


class RefusedError(Exception):
    """onnxruntime cannot load or run a model: at which node, as far as it says so, and why."""

    def __init__(self, reason: str, node: str | None = None, op: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.node, self.op = reason, node, op
        self.is_of_run = self.is_of_format = False

    def sentence(self) -> str:
        """Returns what failed as one sentence."""
        if self.node is None:
            return f"onnxruntime cannot run the model: {self.reason}."
        return f"onnxruntime cannot run the node {self.node!r} ({self.op}): {self.reason}."


def refused(error: Exception) -> RefusedError:
    """Returns what an error of onnxruntime says, in one line."""
    text = CODE.sub("", str(error)).strip()
    for pattern in PLACES:
        if found := pattern.search(text):
            parts = found.groupdict()
            return RefusedError(_plain(parts["reason"]), parts.get("node"), parts.get("op"))
    result = RefusedError(_plain(text))
    result.is_of_format = bool(NEW_OPSET.search(text) or NEW_IR.search(text))
    return result


def _plain(text: str) -> str:
    version = runtime().__version__
    if found := NEW_OPSET.search(text):
        return f"its opset {found[1]} is newer than onnxruntime {version} knows; export it with an older one"
    if found := NEW_IR.search(text):
        return f"its IR version {found[1]} is newer than the {found[2]} that onnxruntime {version} knows; save it anew"
    if any(words in text for words in UNKNOWN):
        return f"onnxruntime {version} has no such op; use a version that has it, or ops of ONNX"
    if "Could not find an implementation" in text:
        return "there is no kernel for it on the CPU in this dtype"
    text = IN_SOURCE.sub("", BEFORE_IT.sub("", INNERMOST.sub("", text.strip())))
    line = next((line.strip() for line in text.splitlines() if line.strip()), "it says no reason").rstrip(".")
    line = CONDITION.sub("", line).replace(". ", "; ")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


class Session:
    """Holds a model in onnxruntime; it runs on the CPU and is not optimized. Raises RefusedError."""

    def __init__(
        self, model: ModelProto, borrowed: Mapping[str, Array], folder: str | None, *, prepack: bool = True
    ) -> None:
        options = plain_options(folder)
        if not prepack:  # laying out weights for the kernels takes longer than one run with them
            options.add_session_config_entry("session.disable_prepacking", "1")
        self._lent = lend(options, borrowed)
        self._session = started(model, options)

    def types(self) -> dict[str, tuple[str, list[int | str | None]]]:
        """Returns type and shape of the model's outputs, as onnxruntime infers them."""
        return {item.name: (item.type, item.shape) for item in self._session.get_outputs()}

    def inputs(self) -> list[str]:
        """Returns names of the inputs."""
        return [item.name for item in self._session.get_inputs()]

    def run(self, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Any]:
        """Returns the named outputs as OrtValues, or as arrays if an input has strings. Raises RefusedError."""
        try:
            if any(value.dtype.kind in "OUS" for value in feeds.values()):
                return list(self._session.run(list(names), dict(feeds)))
            values = {name: _ort_value(value) for name, value in feeds.items()}
            return list(self._session.run_with_ort_values(list(names), values))
        except Exception as error:  # onnxruntime has a class per kind of failure, and raises RuntimeError, too
            raised = refused(error)
            raised.is_of_run = True
            raise raised from error


def started(model: ModelProto, options: Any) -> Any:
    """Returns onnxruntime's session for a model. Raises RefusedError."""
    try:
        return runtime().InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as above; protobuf's own if the model has more than 2 GB
        raise refused(error) from error


def runtime() -> Any:
    """Returns the package onnxruntime. Raises OptionError if it is missing."""
    try:
        import onnxruntime
    except ImportError as error:
        raise OptionError(
            "Running an ONNX model needs the package onnxruntime: pip install 'nbkit-torch[onnx]'."
        ) from error
    return onnxruntime


def plain_options(folder: str | None) -> Any:
    """Returns options of a session that says nothing and changes nothing."""
    onnxruntime = runtime()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False  # results are kept as they lie: each is to be freed by itself
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return options


def lend(options: Any, borrowed: Mapping[str, Array]) -> list[Any]:
    """Gives arrays to a session as its initializers; what comes back must live as long as the session."""
    values = [_ort_value(array) for array in borrowed.values()]
    if values:
        options.add_external_initializers(list(borrowed), values)
    return values


def _ort_value(value: Array) -> Any:
    return runtime().OrtValue.ortvalue_from_numpy(np.require(value, requirements="C"))
