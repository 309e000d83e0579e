"""Traces with differences: a real one with a planted fault, and large or hostile ones from numpy."""

from functools import cache

import numpy as np
import pandas as pd
import torch

import nbkit
from nbkit.schema import DIFFS, TEXT
from nbkit.trace.trace import Trace
from tests.support.fakes import fake_trace

STATUSES = np.array(["ok", "ok", "ok", "skipped", "mismatch", "failed"])
DTYPES = np.array(["float32", "bfloat16", "int64"])
HOSTILE = "aten.<img src=x onerror=alert(1)>\u202e" + "long" * 120


@cache
def faulty_trace() -> Trace:
    """A training step on the simulated device, whose addmm is a hundredth too large."""
    torch.manual_seed(0)
    nbkit.SimulatedDevice([nbkit.Fault("aten.addmm", "relative_error")])
    model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.GELU(), torch.nn.Linear(24, 5)).to("sim")
    inputs = torch.randn(12, 16).to("sim")
    with nbkit.opdiff(name="faulty") as trace:
        model(inputs).square().mean().backward()
    nbkit.SimulatedDevice()
    return trace


def large_diffs(n_rows: int) -> Trace:
    """A trace of so many ops, each with a compared tensor; every sixth is a mismatch."""
    trace = fake_trace(n_rows, layers=4, verb="opdiff")
    ops, numbers = trace.ops, np.arange(n_rows)
    diffs = {name: ops[name].array for name in ("op_id", "op", "module", "phase")}
    diffs |= {"role": ["output"] * n_rows, "position": np.zeros(n_rows, np.int64), "shape": ["[4, 8]"] * n_rows}
    diffs |= {"status": STATUSES[numbers % 6], "dtype": DTYPES[numbers % 3]}
    ratios = np.where(numbers % 6 == 4, 10.0 + numbers, (numbers % 7) / 7)
    diffs |= {"noise_ratio": ratios, "max_abs_error": ratios * 1e-7, "max_rel_error": ratios * 1e-6}
    trace.frames["diffs"] = DIFFS.frame(diffs)
    return trace


def hostile_diffs() -> Trace:
    """Six rows whose names would disturb a page."""
    trace = large_diffs(6)
    for frame in ("ops", "diffs"):
        trace.frames[frame] = trace.frames[frame].assign(
            op=pd.array([HOSTILE] * 6, dtype=TEXT), module=pd.array(["<b>a</b>." + "x" * 300] * 6, dtype=TEXT)
        )
    trace.frames["diffs"]["message"] = pd.array(["<script>alert(2)</script>"] * 6, dtype=TEXT)
    return trace
