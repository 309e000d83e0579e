"""Recomputes results of an ONNX model whose readers get other values in their place: the local error of each op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nbkit.readers.onnx.run.engine import HELD, Engine, Types
from nbkit.readers.onnx.run.program import Program
from nbkit.readers.onnx.run.session import RefusedError
from nbkit.readers.onnx.types import element_type
from nbkit.trace.executions.execution import Array

if TYPE_CHECKING:
    from onnx import NodeProto

COMPUTED = "nbkit_computed_"


@dataclass(frozen=True)
class Detached:
    """Holds a program and what it was run with; `names` are those of its values by result_id, `dtypes` by name."""

    program: Program
    fed: Mapping[str, Array]
    names: Mapping[int, str]
    dtypes: Mapping[str, str]
    types: Types

    def recompute(self, replaced: Mapping[int, Array], wanted: Sequence[int]) -> dict[int, Array]:
        """Returns the wanted results, computed once more with other values for the readers of the replaced ones.

        What cannot be computed from these values is missing; inputs and initializers are computed from nothing, so
        they are, too. A replaced result keeps its node, whose output gets another name: its readers, also those in
        inner graphs, find the value that is fed under the old one.
        """
        from onnx import helper

        given = {
            name: _like(value, self.dtypes[name])
            for name, value in ((self.names[key], value) for key, value in replaced.items())
            if _is_fed(self.dtypes[name])
        }
        declared = {
            name: helper.make_tensor_value_info(name, element_type(self.dtypes[name]), value.shape)
            for name, value in given.items()
        }
        nodes = [_renamed(node, given) for node in self.program.nodes]
        feeds = {**self.fed, **given}
        dtypes = {name: self.dtypes[name] for name in feeds}
        engine = Engine(self.program.with_inputs(declared), nodes, feeds, dtypes, prepack=False)
        ids = {COMPUTED + name if name in given else name: key for key in wanted for name in [self.names[key]]}
        found: dict[int, Array] = {}

        def take(name: str, dtype: str, value: Array | None) -> None:
            if value is not None and value.dtype.kind not in "OUS":
                found[ids[name]] = value

        types = {**self.types, **{COMPUTED + name: self.types[name] for name in given if name in self.types}}
        try:
            engine.compute(list(ids), take, types=types)
        except RefusedError:
            return found  # no node can be blamed: what was computed before is all there is
        return found


def _renamed(node: NodeProto, given: Mapping[str, Array]) -> NodeProto:
    if not any(name in given for name in node.output):
        return node
    copy = type(node)()
    copy.CopyFrom(node)
    copy.output[:] = [COMPUTED + name if name in given else name for name in node.output]
    return copy


def _is_fed(dtype: str) -> bool:
    """Returns whether values of a dtype can be given: not in place of texts, or of what is no tensor."""
    return dtype not in ("string", "none") and "(" not in dtype


def _like(value: Array, dtype: str) -> Array:
    """Returns a value in the dtype of the result that it stands for; float32 of what numpy does not have."""
    return np.asarray(value).astype(dtype if dtype in HELD else "float32", copy=False)
