"""Made-up graphs in the form of the schema: a small model, a whole training step of any size, a flat chain."""

from typing import Any

import pandas as pd

from nbkit.graphs.rows import GraphRows
from nbkit.schema import NODES, PARTS, nullable
from nbkit.trace.trace import Trace

EVIL = "</script><img src=x onerror=window.hacked=1>\u202e" + "a very long name " * 30
# Ops of a layer's forward: in which of its modules, which op, and how many ops before it what it reads was made.
LAYER = (
    ("input_layernorm", "aten.pow.Tensor_Scalar", (1,)),
    ("input_layernorm", "aten.mean.dim", (1,)),
    ("input_layernorm", "aten.rsqrt.default", (1,)),
    ("input_layernorm", "aten.mul.Tensor", (1, 4)),
    ("self_attn.q_proj", "aten.mm.default", (1,)),
    ("self_attn.k_proj", "aten.mm.default", (2,)),
    ("self_attn.v_proj", "aten.mm.default", (3,)),
    ("self_attn", "aten.bmm.default", (3, 2)),
    ("self_attn", "aten._softmax.default", (1,)),
    ("self_attn", "aten.bmm.default", (1, 3)),
    ("self_attn.o_proj", "aten.mm.default", (1,)),
    ("", "aten.add.Tensor", (1, 12)),
    ("post_attention_layernorm", "aten.rsqrt.default", (1,)),
    ("post_attention_layernorm", "aten.mul.Tensor", (1, 2)),
    ("mlp.gate_proj", "aten.mm.default", (1,)),
    ("mlp.up_proj", "aten.mm.default", (2,)),
    ("mlp", "aten.silu.default", (2,)),
    ("mlp", "aten.mul.Tensor", (1, 2)),
    ("mlp.down_proj", "aten.mm.default", (1,)),
    ("", "aten.add.Tensor", (1, 8)),
)
ROLES = {"self_attn": "attention", "mlp": "mlp", "input_layernorm": "norm", "post_attention_layernorm": "norm"}
HIDDEN = [2, 128, 64]


def training_graph(layers: int = 2, wide: int = 1, **meta: Any) -> Trace:
    """A training step of `layers` layers; `wide` times the ops in each, and one optimizer op per parameter."""
    steps = _Steps()
    steps.op("forward", "embed_tokens", "aten.embedding.default", [])
    for layer in range(layers):
        for _ in range(wide):
            for module, op, back in LAYER:
                steps.op(
                    "forward", f"layers.{layer}{'.' * bool(module)}{module}", op, [steps.last - one + 1 for one in back]
                )
    steps.op("forward", "lm_head", "aten.mm.default", [steps.last])
    for node in reversed(range(steps.last + 1)):
        module, op = steps.made[node]
        steps.op("backward", module, f"{op.removesuffix('.default')}_backward", [steps.last, node])
    for layer in range(layers * 9):
        steps.op("optimizer", None, "aten._fused_adamw_.default", [steps.last - layer])
    return steps.trace(**meta)


def chain_graph(count: int, **meta: Any) -> Trace:
    """So many ops in one line, without any module."""
    steps = _Steps()
    for _ in range(count):
        steps.op(None, None, "aten.add.Tensor", [steps.last] if steps.last >= 0 else [])
    return steps.trace(**meta)


class _Steps:
    """Ops one after the other."""

    def __init__(self) -> None:
        self.rows = GraphRows()
        self.made: list[tuple[str | None, str]] = []

    @property
    def last(self) -> int:
        return len(self.made) - 1

    def op(self, phase: str | None, module: str | None, op: str, reads: list[int]) -> None:
        path = None if module is None else module
        node = self.rows.node(
            "step", "op", f"{op.split('.')[1]}_{len(self.made)}", op=op, module=path, phase=phase,
            dtype="bfloat16", shape=HIDDEN, device="cuda:0",
        )  # fmt: skip
        for port, src in enumerate(one for one in reads if 0 <= one < node):
            name = f"t{src}"
            self.rows.edge(src, node, name, dst_port=port, src_port=0, dtype="bfloat16", shape=HIDDEN)
        self.made.append((module, op))

    def trace(self, **meta: Any) -> Trace:
        frames = self.rows.frames()
        nodes, parts = with_parts(frames["nodes"])
        known = {"verb": "opgraph", "name": "a step", "complete": True, "notes": [], "skipped_lines": []}
        return Trace({**frames, "nodes": nodes, "parts": parts}, {**known, **meta})


def with_parts(nodes: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The nodes with their parts: phases, in each the modules, numbered ones as repeats."""
    rows: list[dict[str, Any]] = []
    places: dict[tuple[str, ...], int] = {}

    def at(graph: str, phase: str, path: tuple[str, ...]) -> int:
        if (graph, phase, *path) not in places:
            parent = at(graph, phase, path[:-1]) if path else None
            module = ".".join(path) if path else None
            number = int(path[-1]) if path and path[-1].isdigit() else None
            places[graph, phase, *path] = len(rows)
            first = (
                None
                if number is None
                else places[graph, phase, *path[:-1], path[-1] if number == 0 else _first(places, graph, phase, path)]
            )
            rows.append(
                {"part_id": len(rows), "parent_id": parent, "graph": graph, "name": path[-1] if path else phase,
                 "module": module, "type": "LlamaDecoderLayer" if number is not None else None, "phase": phase,
                 "role": "block" if number is not None else ROLES.get(path[-1]) if path else None, "number": number,
                 "repeat_of": first, "nodes": 0}
            )  # fmt: skip
        return places[graph, phase, *path]

    found = []
    for graph, phase, module in zip(nodes["graph"], nodes["phase"], nodes["module"], strict=True):
        is_known = isinstance(phase, str)
        part = at(graph, phase, tuple(module.split(".")) if isinstance(module, str) else ()) if is_known else -1
        found.append(part)
        while part is not None and part >= 0:
            rows[part]["nodes"] += 1
            part = rows[part]["parent_id"]
    filled = nodes.assign(part_id=nullable(pd.Series(found, dtype="int64").to_numpy()))
    return NODES.check(filled), PARTS.frame(rows)


def _first(places: dict[tuple[str, ...], int], graph: str, phase: str, path: tuple[str, ...]) -> str:
    """Name of the first of the numbered parts beside one."""
    beside = [key for key in places if key[:2] == (graph, phase) and key[2:-1] == path[:-1] and key[-1].isdigit()]
    return min(beside, key=places.__getitem__)[-1]
