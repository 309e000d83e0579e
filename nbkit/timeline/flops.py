"""FLOPs of an op from the shapes of its inputs, where those alone tell."""

import json
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from nbkit.timeline.events import ABSENT, Ints

Shapes = list[list[int]]


def op_flops(ops: Sequence[str], known: Ints, shapes: Sequence[str | None]) -> Ints:
    """FLOPs (2 x multiply-adds) per event: the profiler's where known, else those of matrix products, else -1."""
    found = np.where(known > 0, known, ABSENT)
    results: dict[tuple[str, str], int] = {}
    formulas = {op: formula for op in set(ops) if (formula := FORMULAS.get(".".join(op.split(".")[:2]))) is not None}
    for row, (op, text) in enumerate(zip(ops, shapes, strict=True)):
        if op not in formulas or text is None or found[row] >= 0:
            continue
        if (op, text) not in results:
            results[op, text] = _evaluated(formulas[op], text)
        found[row] = results[op, text]
    return found


def _evaluated(formula: Callable[[Shapes], int], text: str) -> int:
    try:
        return formula(json.loads(text))
    except (IndexError, TypeError, ValueError):
        return ABSENT


def _product(left: list[int], right: list[int]) -> int:
    """(..., m, k) by (..., k, n)."""
    return 2 * prod(left) * right[-1]


def _attention(shapes: Shapes) -> int:
    """Query (B, H, S, E), key (B, H, L, E), value (B, H, L, V): two products."""
    query, key, value = shapes[:3]
    rows = prod(query[:-1])
    return 2 * rows * key[-2] * query[-1] + 2 * rows * key[-2] * value[-1]


FORMULAS: dict[str, Callable[[Shapes], int]] = {
    "aten.mm": lambda shapes: _product(shapes[0], shapes[1]),
    "aten.bmm": lambda shapes: _product(shapes[0], shapes[1]),
    "aten.addmm": lambda shapes: _product(shapes[1], shapes[2]),
    "aten.baddbmm": lambda shapes: _product(shapes[1], shapes[2]),
    "aten._scaled_dot_product_flash_attention": _attention,
    "aten._scaled_dot_product_efficient_attention": _attention,
    "aten._scaled_dot_product_cudnn_attention": _attention,
    "aten._scaled_dot_product_flash_attention_for_cpu": _attention,
}
