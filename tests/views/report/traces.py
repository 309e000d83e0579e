"""Traces whose tables the report must answer as the notebook does: hostile names, missing and odd values."""

import numpy as np
import pandas as pd

from nbkit.schema import TEXT
from nbkit.trace.trace import Trace
from tests.support.fakes import make_modules, make_ops, make_tensors, make_trace, small_trace

NAMES = (
    "aten.</script><img src=x onerror=alert(1)>", "aten.\u202eevil\u2066", "aten.tab\tline\nend", "aten.'quote\"s'\\",
    "aten.\U0001f600.Tensor", "aten.\uff21\ue000", "x" * 3000, "", "null", "=exact", "!not", "re:(", "a*b?[c]",
    "aten.Straße \u01c5 İ \u017f K", "constructor", "__proto__", "aten.\x7f\x85\u2028",
)  # fmt: skip
TIMES = (0.0, 0.0005, 0.25, 9.995, 99.95, 999.5, 12.345, 1e6, 3.6e9, 1e18, -2.5, np.nan, 0.125, 1.0005)


def hostile_trace(n_ops: int = 60) -> Trace:
    """Ops of odd names and times, nulls in every column that may have them, nested in odd ways."""
    rows = []
    for op_id in range(n_ops):
        time_us = TIMES[op_id % len(TIMES)]
        name = NAMES[op_id % len(NAMES)]
        row = {"op": name, "self_time_us": time_us, "total_time_us": TIMES[op_id % 7], "start_us": TIMES[op_id % 11]}
        row |= {"parent_id": op_id - op_id % 4} if op_id % 4 else {}
        row |= {"model": name, "module": f"{name}.{name}", "source": name} if op_id % 3 else {"module": ""}
        row |= {"flops": op_id * 10**9, "size_bytes": 1023 * op_id, "group": name} if op_id % 5 else {}
        row |= {"level": ("aten", "kernel", "api", "range")[op_id % 4], "phase": name, "thread": op_id % 2}
        row |= {"forward_op_id": n_ops - 1 - op_id, "module_call": op_id, "stream": op_id % 3} if op_id % 7 else {}
        rows.append(row)
    tensors = make_tensors(*((op_id, role, 7 * op_id % 13) for op_id in range(n_ops) for role in ("input", "output")))
    return make_trace(make_ops(*rows), with_odd_values(tensors), make_modules("", *NAMES[:6], model=NAMES[0]))


def with_odd_values(tensors: pd.DataFrame) -> pd.DataFrame:
    """Statistics from all over the range of floats, and texts that are missing."""
    count = np.arange(len(tensors))
    odd = np.resize(
        np.array([1 / 3, np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308, 12345.5, 1e-5, 99995.0]), len(count)
    )
    texts = {name: pd.array(np.resize(["a", None, NAMES[1]], len(count)), dtype=TEXT) for name in ("name", "device")}
    counts = {name: pd.array(np.where(count % 3, count, 0), dtype="Int64") for name in ("nan_count", "inf_count")}
    numbers = {name: np.roll(odd, place) for place, name in enumerate(("mean", "std", "min", "max", "norm"))}
    return tensors.assign(**texts, **counts, **numbers)


def whole_times(n_ops: int = 60) -> Trace:
    """The hostile trace with times that are whole nanoseconds throughout."""
    trace = hostile_trace(n_ops)
    times = {name: np.arange(n_ops) * step / 1000 for name, step in (("self_time_us", 1501), ("total_time_us", 777))}
    trace.frames["ops"] = trace.ops.assign(**times, start_us=np.arange(n_ops)[::-1] / 8)
    return trace


def without_levels() -> Trace:
    """A trace whose texts are all missing but for names."""
    trace = small_trace()
    missing = {name: pd.array([None] * len(trace.ops), dtype=TEXT) for name in ("model", "module", "source", "device")}
    trace.frames["ops"] = trace.ops.assign(**missing)
    return trace
