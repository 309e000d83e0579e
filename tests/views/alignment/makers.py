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
from tests.support.graph_frames import Frames, make_graph

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


def _ops(diverge: bool) -> list[tuple[Any, ...]]:
    attention, mlp = f"{LAYER}.self_attn", f"{LAYER}.mlp"
    own = ("same", "name", "local", 0.0121, 0.0121) if diverge else SAME
    passed = (
        ("same", "structure", "propagated", 0.0093, 2e-8) if diverge else ("same", "structure", "clean", 3e-7, None)
    )
    mark = "~" if diverge else "="
    before = [
        ("aten.embedding.default", "Gather", "model.embed_tokens", [2, 64, 64]),
        *[("aten.mm.default", "MatMul", f"{attention}.{part}_proj", [2, 64, 64]) for part in "qkv"],
        *[("aten.view.default", "Reshape", attention, [2, 64, 8, 8])] * 3,
        *[("aten.transpose.int", "Transpose", attention, [2, 8, 64, 8])] * 3,
    ]
    rows = [_op(number, "=", ops, ("same", "name", "clean", number * 1e-8, None)) for number, ops in enumerate(before)]
    rows.append(
        (
            "op",
            "=",
            ("rotate_half", "aten.cat.default", attention),
            (LONG, "Concat"),
            [2, 8, 64, 8],
            "same",
            "structure",
            "clean",
            4e-8,
            None,
        )
    )
    rows.append(
        ("op", "-", ("mul_scale", "aten.mul.Scalar", attention), None, [2, 8, 64, 64], "folded", None, None, None, None)
    )
    rows.append(
        (
            "op",
            "=",
            ("scores", "aten.bmm.default", attention),
            ("/MatMul_3_output_0", "FusedMatMul"),
            [2, 8, 64, 64],
            "same",
            "values",
            "clean",
            1.1e-7,
            None,
        )
    )
    rows.append(
        (
            "op",
            mark,
            ("softmax", "aten._softmax.default", attention),
            ("/Softmax_output_0", "Softmax"),
            [2, 8, 64, 64],
            *own,
        )
    )
    after = [
        ("aten.bmm.default", "MatMul", attention, [2, 8, 64, 8]),
        ("aten.transpose.int", "Transpose", attention, [2, 64, 8, 8]),
        ("aten.view.default", "Reshape", attention, [2, 64, 64]),
        ("aten.mm.default", "MatMul", f"{attention}.o_proj", [2, 64, 64]),
        ("aten.add.Tensor", "Add", LAYER, [2, 64, 64]),
        ("aten.mm.default", "MatMul", f"{mlp}.up_proj", [2, 64, 256]),
        ("aten.silu.default", "QuickGelu", mlp, [2, 64, 256]),
        ("aten.mm.default", "MatMul", f"{mlp}.down_proj", [2, 64, 64]),
        ("aten.add.Tensor", "Add", LAYER, [2, 64, 64]),
    ]
    rows += [_op(20 + number, mark, ops, passed) for number, ops in enumerate(after)]
    rows.append(
        (
            "op",
            mark,
            ("gelu_twice", "aten.gelu.default", mlp),
            ("/Gelu_output_0", "Gelu"),
            [2, 64, 256],
            "other",
            "structure",
            *(("both", 0.02, 0.011) if diverge else ("clean", 0.0, None)),
        )
    )
    rows.append(
        (
            "op",
            mark,
            ("to_half", "aten._to_copy.default", mlp),
            ("/Cast_output_0", "Cast"),
            [2, 64, 256],
            "cast",
            "structure",
            None,
            None,
            None,
        )
        if diverge
        else _op(40, "=", before[0], SAME)
    )
    rows += [
        (
            "op",
            "+",
            None,
            (f"/layers.0/Unsqueeze_{number}_output_0", "Unsqueeze", None),
            [1, 64],
            None,
            None,
            None,
            None,
            None,
        )
        for number in range(3)
    ]
    return rows


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
    sides = []
    for side in ("left", "right"):
        mine = frames["results"][frames["results"]["side"] == side]
        names = mine.set_index("result_id")["name"]
        nodes = [
            (row["name"], KINDS.get(row["kind"], row["op"]), row["module"] if isinstance(row["module"], str) else "", json.loads(row["shape"]),
             [names[one] for one in json.loads(row["reads"])] if isinstance(row["reads"], str) else [])
            for _, row in mine.iterrows()
        ]  # fmt: skip
        sides.append(make_graph(f"{side}: decoder", *nodes))
    return merged(*sides, compare_graphs(*sides))


def large_trace(n_rows: int) -> Trace:
    """A trace of so many rows; every tenth differs, every twentieth is on one side only."""
    numbers = np.arange(n_rows)
    marks = np.where(numbers % 20 == 19, "-", np.where((numbers % 10 == 7) & (numbers > n_rows // 2), "~", "="))
    is_pair, differs = marks != "-", marks == "~"
    first = int(np.flatnonzero(differs)[0])
    classes = np.where(differs, "propagated", np.where(is_pair, "clean", None)).astype(object)
    classes[first] = "local"
    names = [f"model.layers.{number // 100}.self_attn.result_{number}" for number in range(n_rows)]
    modules = [f"model.layers.{number // 100}.self_attn" for number in range(n_rows)]
    right_ids = np.where(is_pair, n_rows + np.cumsum(is_pair) - 1, -1)
    table = {
        "left_id": numbers, "right_id": pd.array(np.where(is_pair, right_ids, 0), "Int64"), "mark": marks,
        "action": np.where(is_pair, "match", "left_only"), "relation": np.where(is_pair, "same", None),
        "evidence": np.where(is_pair, "name", None), "kind": ["op"] * n_rows, "op": ["aten.mm.default"] * n_rows,
        "right_op": np.where(is_pair, "MatMul", None), "module": modules, "name": names,
        "right_name": [f"/{name}_output_0" if pair else None for name, pair in zip(names, is_pair, strict=True)],
        "dtype": ["float32"] * n_rows, "right_dtype": np.where(is_pair, "float32", None),
        "shape": ["[64, 64]"] * n_rows, "right_shape": np.where(is_pair, "[64, 64]", None),
        "output_error": np.where(differs, 1e-2 + numbers * 1e-8, np.where(is_pair, 1e-8, np.nan)),
        "local_error": np.where(numbers == first, 1e-2, np.nan), "error_class": classes,
    }  # fmt: skip
    table["right_id"][~is_pair] = pd.NA
    count = n_rows + int(is_pair.sum())
    sides = np.where(np.arange(count) < n_rows, "left", "right")
    all_names = [*names, *(f"/{name}_output_0" for name, pair in zip(names, is_pair, strict=True) if pair)]
    results = RESULTS.frame({
        "result_id": np.arange(count), "side": sides, "kind": ["op"] * count, "name": all_names,
        "op": ["aten.mm.default"] * count, "is_output": np.zeros(count, bool), "dtype": ["float32"] * count,
        "shape": ["[64, 64]"] * count, "numel": np.full(count, 4096), "mean": np.zeros(count),
    })  # fmt: skip
    frame = ALIGNMENT.frame(table)
    meta = _trace([], diverge=False, graphs=False).meta
    about = {"name": names[first], "op": "aten.mm.default", "module": modules[first], "source": None}
    point = {"kind": None, "message": "the results differ", "error": 1e-2, "error_before": 1e-8, "local_error": 1e-2}
    return Trace(
        {"alignment": frame, "results": results},
        {**meta, "first_divergence": {**point, "row": first, "left": about, "right": about}},
    )
