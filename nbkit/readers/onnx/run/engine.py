"""Computes named values of a Program, in groups that fit into memory; what cannot be computed is left out and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nbkit.readers.element_sizes import element_bits
from nbkit.readers.onnx.graph import inner_graphs, op_name
from nbkit.readers.onnx.run.program import Program, built, needed, reads, without
from nbkit.readers.onnx.run.session import RefusedError, Session
from nbkit.readers.onnx.types import SPELLED, element_type
from nbkit.trace.executions.execution import Array

if TYPE_CHECKING:
    from onnx import NodeProto

# What numpy has; other numbers come and go as float32, through a Cast in the model.
HELD = frozenset("bool float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 string".split())
AS_FLOAT32 = "nbkit_float32_"
# Results of one session's run are in memory together.
GROUP_BYTES = 1 << 30
# So many nodes that fail are left out one after the other.
MOST_FAILURES = 20
Take = Callable[[str, str, Array | None], None]
Types = Mapping[str, tuple[str, Sequence[int | str | None]]]


class Engine:
    """Computes values of a program from its inputs.

    `dtypes` are those of what is fed, by name. `types` are those of the results as onnxruntime writes them, with
    shapes; nothing of a result that it cannot hand out. Without `prepack`, weights are used as they lie in memory.
    """

    def __init__(
        self,
        program: Program,
        nodes: Sequence[NodeProto],
        feeds: Mapping[str, Array],
        dtypes: Mapping[str, str],
        *,
        prepack: bool = True,
    ) -> None:
        self.program, self.nodes, self.prepack = program, list(nodes), prepack
        self.feeds, self.dtypes = dict(feeds), dict(dtypes)
        self.types: dict[str, tuple[str, Sequence[int | str | None]]] = {}
        self.failures: list[RefusedError] = []
        self._hidden: set[str] = set()  # values whose Cast has no kernel

    def compute(self, wanted: Sequence[str], take: Take, *, types: Types | None = None) -> None:
        """Hands name, dtype and value of each wanted value that can be computed to `take`, in order.

        Values that are no tensors are null. `types` are known ones, so that nothing needs to be found out. Raises
        RefusedError if onnxruntime refuses the model without naming a node, or if too many nodes fail.
        """
        if types is None:
            self._try(wanted, self._find_types)
        else:
            self.types = dict(types)
        groups = list(_grouped(wanted, self.types))
        for number, group in enumerate(groups):
            later = [name for one in groups[number + 1 :] for name in one]
            kept = self._read_by(later, group) if later else set[str]()

            def run(names: list[str], kept: set[str] = kept) -> None:
                self._run(names, kept, take)

            self._try(group, run)
            for name in self.feeds.keys() - self.dtypes.keys() - kept:
                del self.feeds[name]

    def _try(self, wanted: Sequence[str], attempt: Callable[[list[str]], None]) -> None:
        """Attempts something until no node fails that is needed for what is wanted."""
        while True:
            made = {name for node in self.nodes for name in node.output}
            names = [name for name in wanted if name in made]
            if not names:
                return None
            try:
                return attempt(names)
            except RefusedError as error:
                if error.node is not None and error.node.startswith(AS_FLOAT32):
                    self._hidden.add(error.node.removeprefix(AS_FLOAT32))
                    continue
                failed = _node_of(error, self.nodes)
                if failed is None and not (error.is_of_format or error.is_of_run):
                    failed = self._first_refused()
                if failed is None or len(self.failures) >= MOST_FAILURES:
                    raise
                error.node, error.op = failed.name, op_name(failed)
                self.failures.append(error)
                self.nodes = without(self.nodes, failed.name)

    def _first_refused(self) -> NodeProto | None:
        """Returns the last node of the shortest beginning that onnxruntime does not load, found by halving."""
        nodes = self.nodes
        good, bad = 0, len(nodes)
        try:
            while bad - good > 1:
                middle = (good + bad) // 2
                self.nodes = nodes[:middle]
                try:
                    self._session([name for node in self.nodes for name in node.output if name], prepack=False)
                    good = middle
                except RefusedError:
                    bad = middle
        finally:
            self.nodes = nodes
        return nodes[good] if nodes else None

    def _find_types(self, names: list[str]) -> None:
        self.types.update(self._session(names, prepack=False).types())

    def _read_by(self, later: Sequence[str], group: Sequence[str]) -> set[str]:
        """Returns which tensors of the group and before it are read by the groups behind it."""
        tensors = {name for name in group if self._dtype(name) is not None}
        have = tensors | self.feeds.keys()
        return {name for node in needed(self.nodes, later, have) for name in reads(node)} & have

    def _run(self, names: list[str], kept: set[str], take: Take) -> None:
        tensors = [name for name in names if self._dtype(name) is not None]
        values: list[Any] = []
        if tensors:
            session = self._session(tensors, prepack=self.prepack)
            fed = {name: self.feeds[name.removeprefix(AS_FLOAT32)] for name in session.inputs()}
            values = session.run([self._exposed(name) for name in tensors], fed)
            del session
        values.reverse()
        for name in names:
            if self._dtype(name) is None:
                take(name, dtype_of(self.types[name][0]) if name in self.types else "none", None)
                continue
            value = values.pop()  # popped, so that nothing else keeps it alive
            array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
            take(name, dtype_of(self.types[name][0]), array)
            if name in kept:
                self.feeds[name] = array

    def _dtype(self, name: str) -> str | None:
        """Returns the dtype of a result; null of what is no tensor or cannot be handed out."""
        kind = self.types.get(name, ("", ()))[0]
        return dtype_of(kind) if kind.startswith("tensor(") and name not in self._hidden else None

    def _exposed(self, name: str) -> str:
        dtype = self._dtype(name)
        return name if dtype is None or dtype in HELD else AS_FLOAT32 + name

    def _session(self, names: Sequence[str], *, prepack: bool) -> Session:
        from onnx import TensorProto, helper

        nodes = needed(self.nodes, names, self.feeds)
        read = {name for node in nodes for name in reads(node)}
        inputs, casts = [], []
        for name, value in self.feeds.items():
            dtype = self.dtypes.get(name) or self._dtype(name) or str(value.dtype)
            if name not in read:
                continue
            if dtype in HELD:
                inputs.append(helper.make_tensor_value_info(name, element_type(dtype), value.shape))
            else:
                fed = AS_FLOAT32 + name
                inputs.append(helper.make_tensor_value_info(fed, TensorProto.FLOAT, value.shape))
                casts.append(helper.make_node("Cast", [fed], [name], to=element_type(dtype)))
        outputs = [self._exposed(name) for name in names]
        exposing = [
            helper.make_node("Cast", [name], [output], name=output, to=TensorProto.FLOAT)
            for name, output in zip(names, outputs, strict=True)
            if name != output
        ]
        model, borrowed = built(self.program, [*casts, *nodes, *exposing], inputs, outputs)
        return Session(model, borrowed, self.program.folder, prepack=prepack)


def dtype_of(kind: str) -> str:
    """Returns `float32` of `tensor(float)`; other types as onnxruntime writes them."""
    name = kind.removeprefix("tensor(").removesuffix(")") if kind.startswith("tensor(") else kind
    return SPELLED.get(name, name)


def _node_of(error: RefusedError, nodes: Sequence[NodeProto]) -> NodeProto | None:
    for node in nodes:
        if error.node == node.name or (error.node and _has_inside(node, error.node)):
            return node
    name = (error.op or "").replace(":", ".")
    return next((node for node in nodes if name and op_name(node) == name), None) if error.node is None else None


def _has_inside(node: NodeProto, name: str) -> bool:
    return any(
        inner.name == name or _has_inside(inner, name) for _, graph in inner_graphs(node) for inner in graph.node
    )


def _grouped(names: Sequence[str], types: Types) -> Iterator[list[str]]:
    """Yields the names in groups of at most so many bytes; a result of unknown size counts as the largest known."""
    sizes = {name: _size_bytes(*types.get(name, ("", ()))) for name in names}
    largest = max((size for size in sizes.values() if size is not None), default=0)
    group: list[str] = []
    held = 0
    for name in names:
        size = sizes[name]
        size = largest if size is None else size
        if group and held + size > GROUP_BYTES:
            yield group
            group, held = [], 0
        group.append(name)
        held += size
    if group:
        yield group


def _size_bytes(kind: str, shape: Sequence[int | str | None]) -> int | None:
    known = [size for size in shape if isinstance(size, int)]
    if len(known) < len(shape) or not kind.startswith("tensor("):
        return None
    return prod(known) * max(element_bits(dtype_of(kind)) or 32, 8) // 8
