"""Recomputes results of an ONNX model whose readers get other values in their place: the local error of each op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nbkit.executions.execution import Array
from nbkit.readers.onnx.run.engine import HELD, computed
from nbkit.readers.onnx.run.program import Program
from nbkit.readers.onnx.run.session import RefusedError
from nbkit.readers.onnx.types import element_type

if TYPE_CHECKING:
    from onnx import NodeProto

COMPUTED = "nbkit_computed_"


@dataclass(frozen=True)
class Detached:
    """Holds a model and what it was run with; `names` and `dtypes` are those of its results, by result_id."""

    program: Program
    fed: Mapping[str, Array]
    names: Mapping[int, str]
    dtypes: Mapping[int, str]

    def recompute(self, replaced: Mapping[int, Array], wanted: Sequence[int]) -> dict[int, Array]:
        """Returns the wanted results, computed once more with other values for the readers of the replaced ones.

        What cannot be computed from these values is missing. A replaced result keeps its node, whose output gets
        another name: so the readers, also those in inner graphs, find the value that is fed under the old one.
        """
        from onnx import helper

        given = {
            self.names[key]: _like(value, self.dtypes[key]) for key, value in replaced.items() if key in self.names
        }
        types = {self.names[key]: element_type(self.dtypes[key]) for key in replaced if key in self.names}
        declared = [helper.make_tensor_value_info(name, types[name], value.shape) for name, value in given.items()]
        program = replace(
            self.program,
            inputs=(*(value for value in self.program.inputs if value.name not in given), *declared),
            tensors={name: tensor for name, tensor in self.program.tensors.items() if name not in given},
            arrays={name: array for name, array in self.program.arrays.items() if name not in given},
            sparse={name: tensor for name, tensor in self.program.sparse.items() if name not in given},
        )
        ids = {}
        for key in wanted:
            name = self.names[key]
            ids[COMPUTED + name if name in given else name] = key
        found: dict[int, Array] = {}

        def take(name: str, dtype: str, value: Any) -> None:
            if value is not None and value.dtype != object:
                found[ids[name]] = value

        nodes = [_renamed(node, given) for node in self.program.nodes]
        try:
            computed(program, nodes, {**self.fed, **given}, list(ids), take, prepack=False)
        except RefusedError:
            return found  # the values fit no op, or not the model as a whole: nothing could be computed
        return found


def _renamed(node: NodeProto, given: Mapping[str, Any]) -> NodeProto:
    if not any(name in given for name in node.output):
        return node
    from onnx import NodeProto

    copy = NodeProto()
    copy.CopyFrom(node)
    copy.output[:] = [COMPUTED + name if name in given else name for name in node.output]
    return copy


def _like(value: Array, dtype: str) -> Array:
    """Returns a value in the dtype of the result that it stands for; float32 of what numpy does not have."""
    return np.asarray(value, dtype=dtype if dtype in HELD else np.float32)
