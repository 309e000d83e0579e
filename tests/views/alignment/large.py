"""Makes an alignment of any number of rows, fast."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import ALIGNMENT, RESULTS
from nbkit.trace.trace import Trace
from tests.views.alignment.makers import aligned_trace


def large_trace(n_rows: int) -> Trace:
    """A trace of so many rows; past the middle every tenth differs, and every twentieth is on one side only."""
    numbers = np.arange(n_rows)
    differs = (numbers % 10 == 7) & (numbers > n_rows // 2)
    marks = np.where(numbers % 20 == 19, "-", np.where(differs, "~", "="))
    first = int(np.flatnonzero(differs)[0])
    modules = [f"model.layers.{number // 100}.self_attn" for number in range(n_rows)]
    names = [f"{module}.result_{number}" for number, module in enumerate(modules)]
    frames = {
        "alignment": ALIGNMENT.frame(_rows(names, modules, marks, first)),
        "results": RESULTS.frame(_results(names, marks != "-")),
    }
    side = {"name": names[first], "op": "aten.mm.default", "module": modules[first], "source": None}
    errors = {"error": 1e-2, "error_before": 1e-8, "local_error": 1e-2}
    about = {"kind": None, "message": "the results differ", "row": first, "left": side, "right": side, **errors}
    return Trace(frames, {**aligned_trace(diverge=False).meta, "first_divergence": about})


def _rows(names: list[str], modules: list[str], marks: npt.NDArray[np.str_], first: int) -> dict[str, Any]:
    count, numbers, is_pair, differs = len(names), np.arange(len(names)), marks != "-", marks == "~"
    classes = np.where(differs, "propagated", np.where(is_pair, "clean", None)).astype(object)
    classes[first] = "local"
    right_ids = pd.array(count + np.cumsum(is_pair) - 1, "Int64")
    right_ids[~is_pair] = pd.NA
    both = {"relation": "same", "evidence": "name", "right_op": "MatMul", "right_dtype": "float32"}
    return {
        "left_id": numbers, "right_id": right_ids, "mark": marks, "error_class": classes,
        "action": np.where(is_pair, "match", "left_only"), "kind": ["op"] * count, "op": ["aten.mm.default"] * count,
        "module": modules, "name": names, "dtype": ["float32"] * count, "shape": ["[64, 64]"] * count,
        "right_name": [f"/{name}_output_0" if pair else None for name, pair in zip(names, is_pair, strict=True)],
        "output_error": np.where(differs, 1e-2 + numbers * 1e-8, np.where(is_pair, 1e-8, np.nan)),
        "local_error": np.where(numbers == first, 1e-2, np.nan),
        **{name: np.where(is_pair, text, None) for name, text in both.items()},
    }  # fmt: skip


def _results(names: list[str], is_pair: npt.NDArray[np.bool_]) -> dict[str, Any]:
    right = [f"/{name}_output_0" for name, pair in zip(names, is_pair, strict=True) if pair]
    count = len(names) + len(right)
    return {
        "result_id": np.arange(count), "side": ["left"] * len(names) + ["right"] * len(right), "kind": ["op"] * count,
        "name": [*names, *right], "op": ["aten.mm.default"] * count, "is_output": np.zeros(count, bool),
        "dtype": ["float32"] * count, "shape": ["[64, 64]"] * count, "numel": np.full(count, 4096),
    }  # fmt: skip
