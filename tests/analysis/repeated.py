"""Made-up timings with repeats, of which it is known what differs."""

from typing import Any

import numpy as np

from nbkit.schema import SAMPLES
from nbkit.trace.trace import Trace
from tests.support.fakes import make_ops

MODULES = [f"blocks.{number}" for number in range(12)]
TREE_OPS = ("aten.mm.default", "aten.add.Tensor", "aten.gelu.default", "aten.mul.Tensor")


def nested(
    seed: int, *, slow: str | None = None, part: str = "Block", by: float = 1.0, repeats: int = 10, **kernel: float
) -> Trace:
    """A step of 12 blocks of Python's 50 us and four ops of 100 us each, with 3 % noise and every fifth repeat slow.

    In the block `slow`, `part` takes `by` times as long.
    """
    rows: list[dict[str, Any]] = [{"level": "range", "op": "step", "self_time_us": 20.0}]
    for module in MODULES:
        place = {"model": "Net", "module": module}
        factor = by if module == slow else 1.0
        own = 50.0 * (factor if part == "Block" else 1.0)
        rows.append({**place, "parent_id": 0, "level": "module", "op": "Block", "self_time_us": own})
        block = len(rows) - 1
        for op in TREE_OPS:
            time = 100.0 * (factor if part == op else 1.0)
            rows.append({**place, "parent_id": block, "op": op, "self_time_us": time, **kernel})
    ops = make_ops(*rows)
    return Trace(
        {"ops": ops, "samples": samples_of(ops, seed, repeats)},
        {"complete": True, "verb": "optime", "repeats": repeats},
    )


def samples_of(ops: Any, seed: int, repeats: int) -> Any:
    """Samples of the ops' self times, with noise; those on the device are a tenth of them where the ops have any."""
    draw = np.random.default_rng(seed)
    times = np.outer(ops["self_time_us"], np.ones(repeats)) * draw.normal(1.0, 0.03, (len(ops), repeats))
    times[:, 2::5] *= 1.4
    row, repeat = np.indices(times.shape).reshape(2, -1)
    device = times.ravel() / 10 if ops["self_device_time_us"].notna().any() else np.full(times.size, np.nan)
    columns = {"op_id": row, "repeat": repeat, "total_time_us": times.ravel(), "self_time_us": times.ravel()}
    return SAMPLES.frame({**columns, "self_device_time_us": device})
