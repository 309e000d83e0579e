"""Flow says which op made what an op reads, and which ops read what an op made."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from nbkit.ops.families import FORMS, PARTS, TRIANGLES
from nbkit.ops.names import packet_of

RECURRENT = r"(?:^|[._])(?:gru|lstm|rnn_tanh|rnn_relu)(?:$|[._])"


class Tensor(NamedTuple):
    """Describes a tensor that an op reads or gives; a row of `tensors`."""

    op_id: int
    role: str
    position: int
    tensor_id: int
    storage_id: int
    dtype: str
    shape: tuple[int, ...]  # -1 where a size is not known
    numel: int
    name: str | None  # of a parameter or buffer


class Op(NamedTuple):
    """Describes an op that tensors go into or come out of."""

    op_id: int
    name: str  # "_softmax" of aten._softmax.default
    module: str | None
    phase: str
    arguments: dict[str, Any]
    inputs: list[Tensor]
    outputs: list[Tensor]

    @property
    def is_ahead(self) -> bool:
        """Returns whether it is on the way to the loss; without gradients nothing says that it is forward."""
        return self.phase in ("forward", "other")

    def place_of(self, tensor_id: int) -> int:
        """Returns where a tensor stands among the inputs; -1 where it is none of them."""
        return next((at for at, tensor in enumerate(self.inputs) if tensor.tensor_id == tensor_id), -1)


class Flow:
    """Holds the aten ops of a recording in call order, and the way from one to the next.

    `held` is the memory of parameters and buffers, `asked` the ops that a line of code asks for by a method of Tensor.
    """

    def __init__(self, ops: pd.DataFrame, tensors: pd.DataFrame) -> None:
        of_op: dict[int, tuple[list[Tensor], list[Tensor]]] = defaultdict(lambda: ([], []))
        for tensor in _tensors(tensors):
            of_op[tensor.op_id][tensor.role == "output"].append(tensor)
        table = ops[ops["level"] == "aten"]
        columns = [table[name].tolist() for name in ("op_id", "op", "module", "phase", "arguments")]
        self.ops = {row[0]: _op(row, *of_op[row[0]]) for row in zip(*columns, strict=True)}
        self.is_causal = self._is_causal(ops, tensors)
        self.held = frozenset(tensors["storage_id"][tensors["name"].notna()].dropna().astype("int64").tolist())
        # x.to(), x.half(); casts of autocast are called by other functions.
        asked = ops["parent_id"].map(ops["op"]).astype("string").str.startswith("torch.Tensor.").fillna(False)
        self.asked = frozenset(ops["op_id"][asked.to_numpy(dtype=bool)].tolist())
        self._makers: dict[int, list[int]] = defaultdict(list)
        self._readers: dict[int, list[int]] = defaultdict(list)
        for op in self.ops.values():
            for tensor in op.outputs:
                self._makers[tensor.tensor_id].append(op.op_id)
            for tensor in op.inputs:
                self._readers[tensor.tensor_id].append(op.op_id)

    def _is_causal(self, ops: pd.DataFrame, tensors: pd.DataFrame) -> bool:
        """Returns whether something shows that the model reads a sequence from its beginning, position by position."""
        # A triangle of another shape is a border of windows, which may look both ways (Longformer).
        triangles = (op.outputs[0].shape for op in self.named(*TRIANGLES) if op.outputs)
        is_masked = any(op.arguments.get("is_causal") is True for op in self.ops.values()) or any(
            shape[-1:] == shape[-2:-1] for shape in triangles
        )
        is_recurrent = ops["op"].str.contains(RECURRENT).any() and not tensors["name"].str.endswith("_reverse").any()
        return is_masked or bool(is_recurrent)

    def named(self, *names: str) -> Iterator[Op]:
        """Returns the ops of these names, in call order."""
        return (op for op in self.ops.values() if op.name in names)

    def maker(self, tensor: Tensor) -> Op | None:
        """Returns the op that gave what `tensor.op_id` reads; null where it was there before."""
        before = [op_id for op_id in self._makers[tensor.tensor_id] if op_id < tensor.op_id]
        return self.ops[before[-1]] if before else None

    def readers(self, op: Op) -> list[Op]:
        """Returns the ops that read what an op gave, until another op gave that tensor anew."""
        found = set()
        for made in op.outputs:
            until = next((maker for maker in self._makers[made.tensor_id] if maker > op.op_id), None)
            later = (reader for reader in self._readers[made.tensor_id] if reader > op.op_id)
            found |= {reader for reader in later if until is None or reader <= until}
        return [self.ops[reader] for reader in sorted(found)]

    def values_of(self, tensor: Tensor) -> tuple[object, ...]:
        """Returns what tells the values of a tensor: equal for views of all of one memory, or of parts cut alike.

        A copy has values of its own, since it may be changed in place.
        """
        op = self.maker(tensor)
        is_view = op is not None and op.inputs and op.inputs[0].storage_id == tensor.storage_id
        if op is None or not is_view or op.name not in (*FORMS, *PARTS):
            return (tensor.tensor_id,)
        if op.name in FORMS and op.inputs[0].numel == tensor.numel:
            return self.values_of(op.inputs[0])
        return (op.name, json.dumps(op.arguments), *self.values_of(op.inputs[0]))

    def behind(self, tensor: Tensor, forms: frozenset[str] = FORMS) -> Tensor:
        """Returns what a tensor was made of by ops that only gave it another form."""
        op = self.maker(tensor)
        while op is not None and op.name in forms and op.inputs:
            tensor = op.inputs[0]
            op = self.maker(tensor)
        return tensor

    def origin(self, tensor: Tensor) -> Op | None:
        """Returns the op that computed what is read, behind all that only gave it another form."""
        return self.maker(self.behind(tensor))


def _tensors(tensors: pd.DataFrame) -> Iterator[Tensor]:
    storages = tensors["storage_id"].fillna(-1).astype("int64").tolist()
    shapes = {
        text: tuple(-1 if size is None else size for size in json.loads(text)) for text in tensors["shape"].unique()
    }
    names = [name if isinstance(name, str) else None for name in tensors["name"].tolist()]
    columns = [tensors[name].tolist() for name in ("op_id", "role", "position", "tensor_id", "dtype", "shape", "numel")]
    for (op_id, role, position, tensor_id, dtype, shape, numel), storage, name in zip(
        zip(*columns, strict=True), storages, names, strict=True
    ):
        yield Tensor(op_id, role, position, tensor_id, storage, dtype, shapes[shape], numel, name)


def _op(row: tuple[Any, ...], inputs: list[Tensor], outputs: list[Tensor]) -> Op:
    op_id, op, module, phase, arguments = row
    known = json.loads(arguments) if isinstance(arguments, str) else {}
    return Op(op_id, packet_of(op), module if isinstance(module, str) else None, phase, known, inputs, outputs)
