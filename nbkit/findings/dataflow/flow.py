"""Flow says which op made what an op reads, and which ops read what an op made."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nbkit.ops.families import FORMS, PARTS, TRIANGLES
from nbkit.ops.names import packet_of
from nbkit.step.decode import arguments_of, cells_in
from nbkit.step.reachable import reachable
from nbkit.step.step import Step, Tensor

MOST_OPS = 512
RECURRENT = r"(?:^|[._])(?:gru|lstm|rnn_tanh|rnn_relu)(?:$|[._])"


class Op(NamedTuple):
    """Describes an op that tensors go into or come out of."""

    op_id: int
    name: str  # "_softmax" of aten._softmax.default
    module: str | None
    phase: str
    arguments: Mapping[str, Any]
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

    `held` is the memory of parameters and buffers, `asked` the ops that a line of code asks for by a method of Tensor,
    `texts` are lines of code by source.
    """

    def __init__(self, step: Step, texts: Mapping[str, str] | None = None) -> None:
        self.step, self.texts, ops = step, texts or {}, step.ops
        tensors = step.records()
        of_op = {op_id: [[tensors[row] for row in rows] for rows in of_call] for op_id, *of_call in step.calls()}
        table = ops[ops["level"] == "aten"]
        columns = [cells_in(table[name]) for name in ("op_id", "op", "module", "phase", "arguments")]
        self.ops = {row[0]: _op(row, *of_op.get(row[0], ([], []))) for row in zip(*columns, strict=True)}
        self.is_causal = self._is_causal(ops, step.tensors)
        self.held = frozenset(step.memory[step.tensors["name"].notna().to_numpy(bool)].tolist())
        # x.to(), x.half(); casts of autocast are called by other functions.
        asked = ops["parent_id"].map(ops["op"]).astype("string").str.startswith("torch.Tensor.").fillna(False)
        self.asked = frozenset(ops["op_id"][asked.to_numpy(dtype=bool)].tolist())

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

    def roots(self) -> Iterator[Op]:
        """Returns the ops that begin a backward pass: each reads what the gradients are of, such as the loss."""
        return (op for op in self.named("ones_like") if op.phase == "backward" and op.inputs)

    def maker(self, tensor: Tensor) -> Op | None:
        """Returns the op that gave what `tensor.op_id` reads; null where it was there before."""
        maker = self.step.makers[tensor.row]
        return None if maker < 0 else self.ops.get(int(self.step.op_ids[maker]))

    def readers(self, op: Op) -> list[Op]:
        """Returns the ops that read what an op gave, until another op gave that tensor anew."""
        rows = [row for made in op.outputs for row in self.step.readers.get(made.row, ())]
        return [self.ops[reader] for reader in np.unique(self.step.op_ids[rows]).tolist() if reader in self.ops]

    def uses(self, op: Op, forms: frozenset[str] = FORMS) -> Iterator[tuple[Op, Op]]:
        """Yields the ops ahead that read what an op gave, in whatever form, each with the op that it reads."""

        def onward(pair: tuple[int, int]) -> list[tuple[int, int]]:
            reader = self.ops[pair[1]]
            is_open = reader is op or reader.name in forms
            return [(pair[1], one.op_id) for one in self.readers(reader) if one.is_ahead] if is_open else []

        pairs = reachable([(op.op_id, op.op_id)], onward)
        return ((self.ops[made], self.ops[reader]) for made, reader in pairs if made != reader)

    def made_of(self, tensor: Tensor, most: int = MOST_OPS) -> Iterator[Op]:
        """Yields the ops ahead that a tensor was computed by, the nearest first, and no more than so many."""
        first = self.maker(tensor)

        def before(op_id: int) -> list[int]:
            makers = (self.maker(one) for one in self.ops[op_id].inputs)
            return [maker.op_id for maker in makers if maker is not None and maker.is_ahead]

        return (self.ops[op_id] for op_id in islice(reachable([] if first is None else [first.op_id], before), most))

    def values_of(self, tensor: Tensor) -> tuple[object, ...]:
        """Returns what tells the values of a tensor: equal for views of all of one memory, or of parts cut alike.

        A copy has values of its own, since it may be changed in place.
        """
        op = self.maker(tensor)
        is_view = op is not None and op.inputs and op.inputs[0].memory == tensor.memory
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


def _op(row: tuple[Any, ...], inputs: list[Tensor], outputs: list[Tensor]) -> Op:
    op_id, op, module, phase, arguments = row
    return Op(op_id, packet_of(op), module, phase, arguments_of(arguments), inputs, outputs)
