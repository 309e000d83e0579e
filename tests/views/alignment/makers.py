"""Makes traces of two executions side by side: a decoder layer in torch against its ONNX export, and large ones."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.graph_match.compare_graphs import compare_graphs
from nbkit.analysis.graph_match.side_frames import merged
from nbkit.schema import ALIGNMENT, RESULTS
from nbkit.trace.trace import Trace
from tests.support.graph_frames import Frames, NodeRow, make_graph

LAYER = "model.layers.0"
LONG = "/model/layers.0/self_attn/rotary_emb/apply_rotary_pos_emb/rotate_half/Concat_output_0_of_the_second_half"
# Kind, mark, left (name, op, module), right (name, op), shape, relation, evidence, error class, error, local error.
Side = tuple[str, str | None, str | None] | None
KINDS = {"input": "input", "parameter": "parameter", "constant": "buffer"}
SAME = ("same", "name", "clean", 0.0, None)


def _weights() -> list[tuple[Any, ...]]:
    names = [f"{LAYER}.self_attn.{part}_proj.weight" for part in "qkvo"] + [f"{LAYER}.mlp.up_proj.weight"]
    rows: list[tuple[Any, ...]] = [("input", "=", ("input_ids", None, ""), ("input_ids", None, None), [2, 64], *SAME)]
    for name in names:
        other = f"onnx::MatMul_{len(rows) + 500}"
        module = name.removesuffix(".weight")
        rows.append(
            (
                "parameter",
                "=",
                (name, None, module),
                (other, None, None),
                [64, 64],
                "permute",
                "values",
                "clean",
                0.0,
                None,
            )
        )
    rows.append(("constant", "+", None, ("/Constant_3_output_0", None, None), [1], None, None, None, None, None))
    return rows


# fmt: off
BEFORE = [
    ("aten.embedding.default", "Gather", "model.embed_tokens", [2, 64, 64]),
    *[("aten.mm.default", "MatMul", f"{LAYER}.self_attn.{part}_proj", [2, 64, 64]) for part in "qkv"],
    *[("aten.view.default", "Reshape", f"{LAYER}.self_attn", [2, 64, 8, 8])] * 3,
    *[("aten.transpose.int", "Transpose", f"{LAYER}.self_attn", [2, 8, 64, 8])] * 3,
]
AFTER = [
    ("aten.bmm.default", "MatMul", f"{LAYER}.self_attn", [2, 8, 64, 8]),
    ("aten.transpose.int", "Transpose", f"{LAYER}.self_attn", [2, 64, 8, 8]),
    ("aten.view.default", "Reshape", f"{LAYER}.self_attn", [2, 64, 64]),
    ("aten.mm.default", "MatMul", f"{LAYER}.self_attn.o_proj", [2, 64, 64]),
    ("aten.add.Tensor", "Add", LAYER, [2, 64, 64]),
    ("aten.mm.default", "MatMul", f"{LAYER}.mlp.up_proj", [2, 64, 256]),
    ("aten.silu.default", "QuickGelu", f"{LAYER}.mlp", [2, 64, 256]),
    ("aten.mm.default", "MatMul", f"{LAYER}.mlp.down_proj", [2, 64, 64]),
    ("aten.add.Tensor", "Add", LAYER, [2, 64, 64]),
]
# What a pair of ops has from its relation on: where the softmax differs, and where it does not.
DIFFERS = {
    "softmax": ("same", "name", "local", 0.0121, 0.0121), "after": ("same", "structure", "propagated", 0.0093, 2e-8),
    "gelu": ("other", "structure", "both", 0.02, 0.011), "half": ("cast", "structure", None, None, None),
}
AGREES = {
    "softmax": SAME, "after": ("same", "structure", "clean", 3e-7, None),
    "gelu": ("other", "structure", "clean", 0.0, None), "half": ("cast", "structure", "clean", 0.0, None),
}


def _ops(diverge: bool) -> list[tuple[Any, ...]]:
    how, mark = (DIFFERS, "~") if diverge else (AGREES, "=")
    attention, mlp, square, wide = f"{LAYER}.self_attn", f"{LAYER}.mlp", [2, 8, 64, 64], [2, 64, 256]
    near, nothing = ("clean", 1.1e-7, None), (None,) * 5
    half, softmax = ("rotate_half", "aten.cat.default", attention), ("softmax", "aten._softmax.default", attention)
    scores, gelu = ("scores", "aten.bmm.default", attention), ("gelu_twice", "aten.gelu.default", mlp)
    return [
        *(_op(number, "=", ops, ("same", "name", "clean", number * 1e-8, None)) for number, ops in enumerate(BEFORE)),
        ("op", "=", half, (LONG, "Concat"), [2, 8, 64, 8], "same", "structure", *near),
        ("op", "-", ("mul_scale", "aten.mul.Scalar", attention), None, square, "folded", *nothing[1:]),
        ("op", "=", scores, ("/MatMul_3_output_0", "FusedMatMul"), square, "same", "values", *near),
        ("op", mark, softmax, ("/Softmax_output_0", "Softmax"), square, *how["softmax"]),
        *(_op(20 + number, mark, ops, how["after"]) for number, ops in enumerate(AFTER)),
        ("op", mark, gelu, ("/Gelu_output_0", "Gelu"), wide, *how["gelu"]),
        ("op", mark, ("to_half", "aten._to_copy.default", mlp), ("/Cast_output_0", "Cast"), wide, *how["half"]),
        *(
            ("op", "+", None, (f"/layers.0/Unsqueeze_{number}_output_0", "Unsqueeze", None), [1, 64], *nothing)
            for number in range(3)
        ),
    ]
# fmt: on


def _op(number: int, mark: str, ops: tuple[str, str, str, list[int]], how: tuple[Any, ...]) -> tuple[Any, ...]:
    op, right_op, module, shape = ops
    name = f"{op.split('.')[1]}_{number}"
    return ("op", mark, (name, op, module), (f"/layers.0/{right_op}_{number}_output_0", right_op), shape, *how)


def aligned_trace(*, diverge: bool = True, graphs: bool = False, **meta: Any) -> Trace:
    """A trace of about 40 rows with all marks and relations; the softmax differs first unless `diverge` is false."""
    return _trace([*_weights(), *_ops(diverge)], diverge=diverge, graphs=graphs, **meta)


def _trace(rows: Sequence[tuple[Any, ...]], *, diverge: bool, graphs: bool, **meta: Any) -> Trace:
    results: list[dict[str, Any]] = []
    ids = [_result(results, row, "left") for row in rows]
    left_count = len(results)
    right_ids = [_result(results, row, "right") for row in rows]
    table = [_row(row, left, right) for row, left, right in zip(rows, ids, right_ids, strict=True)]
    first = next((number for number, row in enumerate(table) if row["error_class"] == "local"), None)
    frames = {"alignment": ALIGNMENT.frame(table), "results": RESULTS.frame(results)}
    made = {
        "verb": "opalign", "name": "decoder against decoder.onnx", "created": "2026-11-26T10:00:00+00:00",
        "versions": {"torch": "2.13.0", "onnxruntime": "1.26.0"}, "source": "two executions", "complete": True,
        "error": None, "notes": ["decoder.onnx: 2 results are in subgraphs and were not looked at"],
        "left": {"name": "decoder", "origin": "torch, eager", "results": left_count, "error": None},
        "right": {"name": "decoder.onnx", "origin": "onnxruntime", "results": len(results) - left_count, "error": None},
        "counts": {mark: sum(row["mark"] == mark for row in table) for mark in "=~-+"},
        "first_divergence": _first(table, first) if first is not None and diverge else None,
    }  # fmt: skip
    if graphs:
        frames |= _graphs(frames)
    return Trace(frames, {**made, **meta})


def _result(results: list[dict[str, Any]], row: tuple[Any, ...], side: str) -> int | None:
    known = row[2] if side == "left" else row[3]
    if known is None:
        return None
    kind, shape, start = row[0], row[4], len(results)
    reads = [one["result_id"] for one in results[-2:] if one["side"] == side and kind == "op"]
    results.append({
        "result_id": start, "side": side, "kind": kind, "name": known[0], "op": known[1],
        "module": known[2] if side == "left" else None, "phase": "forward",
        "source": f"models/decoder.py:{80 + start}" if side == "left" else f"decoder.onnx: node {start}",
        "is_output": row[1] in "=~" and known[0] == "add_28", "dtype": "float32", "shape": json.dumps(shape),
        "numel": int(np.prod(shape)), "reads": json.dumps(reads) if reads else None,
        "mean": start / 1e3, "rms": 1.0, "min": -3.0, "max": 3.25, "nan_count": 0, "inf_count": 0,
    })  # fmt: skip
    return start


def _row(row: tuple[Any, ...], left: int | None, right: int | None) -> dict[str, Any]:
    kind, mark, one, other, shape, relation, evidence, error_class, error, local = row
    text, is_pair = json.dumps(shape), left is not None and right is not None
    made = {
        "left_id": left, "right_id": right, "mark": mark, "kind": kind, "phase": "forward",
        "action": "match" if is_pair else "left_only" if right is None else "right_only",
        "relation": relation, "evidence": evidence, "error_class": error_class,
        "output_error": error, "local_error": local, "input_error": 1e-7 if kind == "op" and is_pair else None,
        "max_abs_error": error and error * 3, "max_rel_error": error and error * 40,
    }  # fmt: skip
    if one:
        made |= {
            "name": one[0],
            "op": one[1],
            "module": one[2],
            "dtype": "float32",
            "shape": text,
            "source": f"models/decoder.py:{80 + (left or 0)}",
        }
    if other:
        made |= {"right_name": other[0], "right_op": other[1], "right_dtype": "float32", "right_shape": text}
    if error_class == "local":
        made["message"] = "the rows of the result do not add up to 1: the mask was added in another order."
    return made


def _first(table: list[dict[str, Any]], row: int) -> dict[str, Any]:
    known = table[row]
    return {
        "kind": "another order of operations",
        "message": "the result of softmax differs by 1.2 % though what it reads agrees to 1.1e-07",
        "error": 0.0121, "error_before": 1.1e-7, "local_error": 0.0121, "row": row,
        "left": {"name": known["name"], "op": known["op"], "module": known["module"], "source": known["source"]},
        "right": {"name": known["right_name"], "op": known["right_op"], "module": None, "source": None},
    }  # fmt: skip


def _graphs(frames: dict[str, pd.DataFrame]) -> Frames:
    """The graphs of both sides, whose nodes are called as the results are."""
    results = frames["results"]
    sides = [
        make_graph(f"{side}: decoder", *(_node(row, results["name"]) for _, row in of.iterrows()))
        for side, of in results.groupby("side")
    ]
    return merged(*sides, compare_graphs(*sides))


def _node(row: "pd.Series[Any]", names: "pd.Series[str]") -> NodeRow:
    module = row["module"] if isinstance(row["module"], str) else ""
    reads = json.loads(row["reads"]) if isinstance(row["reads"], str) else []
    op = KINDS.get(row["kind"], row["op"])
    return row["name"], op, module, json.loads(row["shape"]), [names[one] for one in reads]
