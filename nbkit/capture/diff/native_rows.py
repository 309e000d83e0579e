"""What the native part of opdiff has found: rows of right tensors as columns, and its counts."""

import json
from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np

from nbkit.capture.frames.string_columns import text_column
from nbkit.numerics.metrics import COUNTS, Metrics
from nbkit.numerics.precision import Array
from nbkit.schema import nullable

PLACES = ("slot", "is_input", "position", "dtype", "shape")
MEASURED = (
    *("max_abs_error", "mean_abs_error", "max_rel_error", "cosine_similarity", "max_ulp", "noise_ratio", "bias_ratio"),
    *COUNTS,
)


def metrics_of(rows: Array) -> Metrics:
    """Metrics from rows of the library's numbers, one for each pair."""
    found = Metrics(*rows.T)
    return found._replace(**{name: getattr(found, name).astype(np.int64) for name in COUNTS})


class NativeRows:
    """Compared tensors that are right; `found` is what stop_diff() of the library gives."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.compared: int = found["compared"]
        self.left_out: Counter[str] = Counter()
        for reason, count in zip(*found["left_out"], strict=True):
            self.left_out[reason] += count  # many ops have one reason
        self.places = np.frombuffer(found["places"], dtype=np.int64).reshape(-1, len(PLACES)).T
        self.metrics = metrics_of(np.frombuffer(found["metrics"]).reshape(-1, len(Metrics._fields)))
        self.dtypes: list[str] = found["dtypes"]
        self.shapes = [json.dumps(shape) for shape in found["shapes"]]

    @property
    def slots(self) -> Array:
        """For each row the place in Recording.ops at which its op begins."""
        slots: Array = self.places[0]
        return slots

    @cached_property
    def columns(self) -> dict[str, Any]:
        """Columns of diffs, those apart that come from the ops."""
        _, is_input, position, dtype, shape = self.places
        measured = {name: getattr(self.metrics, name) for name in MEASURED}
        return {
            "role": text_column(is_input, ("output", "input")),
            "position": position,
            "dtype": text_column(dtype, self.dtypes),
            "shape": text_column(shape, self.shapes),
            **measured,
            **{name: nullable(measured[name]) for name in COUNTS},
            "mismatch_count": nullable(np.zeros(len(dtype), dtype=np.int64)),
            "mismatch_fraction": np.zeros(len(dtype)),
            "status": text_column(np.zeros(len(dtype), dtype=np.int64), ("ok",)),
        }
