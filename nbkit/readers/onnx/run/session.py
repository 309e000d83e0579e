"""Runs a built model with onnxruntime, and turns what it says of a failure into a node and a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nbkit.errors import OptionError, first_line

Array = npt.NDArray[np.generic]
# How onnxruntime names the node that it means, while it loads and while it runs.
PLACES = (
    re.compile(r"running (?P<op>\S+) node\. Name:'(?P<node>.*?)' Status Message: (?P<reason>.*)", re.DOTALL),
    re.compile(r"Node \((?P<node>.*?)\) Op \((?P<op>\S+?)\) (?P<reason>.*)", re.DOTALL),
    re.compile(r"Node:(?P<node>.*?)\s*\) (?P<reason>.*)", re.DOTALL),
    re.compile(r'In Node, \("(?P<node>.*?)", (?P<op>\S+?), .*?, Error (?P<reason>.*)', re.DOTALL),
    re.compile(r"(?P<reason>Could not find an implementation for (?P<op>\w+)\(\d+\)) node with name '(?P<node>.*?)'"),
    re.compile(r"Fatal error: (?P<op>\S+?)\(-?\d+\) (?P<reason>is not a registered function/op)"),
    re.compile(r"node:? \(?'?(?P<node>[^\s')]+)'?\)?[ .:,](?P<reason>.*)", re.DOTALL),
)
CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
# What stands before a reason in the text of C++: file and line, the signature of a function, a failed condition.
PLACE_IN_SOURCE = re.compile(r"^(?:\S*\.(?:h|cc|cpp):\d+ )(?:.*?\)(?: const)? )?", re.DOTALL)
LONGEST = 200


class RefusedError(Exception):
    """onnxruntime cannot load or run a model: at which node, as far as it says so, and why."""

    def __init__(self, reason: str, node: str | None = None, op: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.node, self.op = reason, node, op


def refused(error: Exception) -> RefusedError:
    """Returns what an error of onnxruntime says, in one line."""
    text = CODE.sub("", str(error)).strip()
    for pattern in PLACES:
        if found := pattern.search(text):
            parts = found.groupdict()
            return RefusedError(_plain(parts["reason"]), parts.get("node"), parts.get("op"))
    return RefusedError(_plain(text))


def _plain(text: str) -> str:
    text = PLACE_IN_SOURCE.sub("", text.strip())
    line = first_line(ValueError(text)).strip().rstrip(".")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


class Session:
    """Holds a model in onnxruntime; it runs on the CPU and is not optimized."""

    def __init__(self, model: Any, borrowed: Mapping[str, Array], folder: str | None, *, prepack: bool = True) -> None:
        onnxruntime = runtime()
        options = plain_options(folder)
        if not prepack:  # weights are laid out for the kernels: takes longer than one run
            options.add_session_config_entry("session.disable_prepacking", "1")
        # The memory of these must live as long as the session.
        self._values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in borrowed.values()]
        if borrowed:
            options.add_external_initializers(list(borrowed), self._values)
        try:
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class per kind of failure, and raises RuntimeError, too
            raise refused(error) from error

    def types(self) -> dict[str, tuple[str, list[int | str | None]]]:
        """Returns type and shape of the model's outputs, as onnxruntime infers them."""
        return {item.name: (item.type, item.shape) for item in self._session.get_outputs()}

    def inputs(self) -> list[str]:
        """Returns names of the inputs."""
        return [item.name for item in self._session.get_inputs()]

    def run(self, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Any]:
        """Returns the named outputs. Raises RefusedError."""
        try:
            return list(self._session.run(list(names), dict(feeds)))
        except Exception as error:
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
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return options
