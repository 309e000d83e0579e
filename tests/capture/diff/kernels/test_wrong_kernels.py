"""A kernel that is wrong, in torch's own dispatcher: what opdiff says of it."""

import math

import pandas as pd
import pytest
import torch
from torch.library import _scoped_library

import nbkit
from nbkit.capture.replay.chunked import PIECE

LARGE = PIECE + 100  # what is larger than a piece is run piece by piece
X = torch.linspace(-2, 2, LARGE)


def with_kernel(change, x):
    """The trace of a step in which `change` has the last word on what sinh gives."""
    with _scoped_library("aten", "IMPL") as library:
        library.impl("sinh", lambda x: change((x.exp() - x.neg().exp()) / 2), "CPU")
        with nbkit.opdiff() as trace:
            x.exp().sinh()
    return trace


def in_float32(change):
    return lambda out: change(out) if out.dtype is torch.float32 else out


def without_float64(out):
    if out.dtype is torch.float64:
        raise NotImplementedError("sinh is not for Double")
    return out


FAULTS = {
    "too large": (in_float32(lambda out: out * (1 + 1e-4)), "mismatch", "worst at ["),
    "one element": (in_float32(lambda out: out.index_fill(0, torch.tensor([7]), 0.0)), "mismatch", "worst at [7]"),
    "one NaN": (in_float32(lambda out: out.index_fill(0, torch.tensor([7]), math.nan)), "mismatch", "1 NaN"),
    "shape": (in_float32(lambda out: out[1:]), "shape", ""),
    "no kernel": (without_float64, "ok", "compared in float32: the reference has no float64 kernel"),
    "right": (lambda out: out, "ok", None),
}


@pytest.mark.filterwarnings("ignore:.*verrid.*:UserWarning")
@pytest.mark.parametrize("count", [10, LARGE])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_kernel_gets_its_row(fault, count):
    change, status, message = FAULTS[fault]
    trace = with_kernel(change, X[:count])
    row = trace.diffs.iloc[1]
    assert trace.diffs["status"].tolist() == ["ok", status]
    assert pd.isna(row["message"]) if message is None else message in row["message"]
    assert list(trace.captured) == [row["op_id"]] * (status != "ok")


@pytest.mark.filterwarnings("ignore:.*verrid.*:UserWarning")
@pytest.mark.parametrize("count", [1_000, LARGE], ids=["whole", "in pieces"])
def test_what_is_kept_of_a_wrong_call_outlives_later_ones(count):
    with _scoped_library("aten", "IMPL") as library:
        library.impl("sinh_", lambda x: x.copy_(in_float32(lambda out: out * 1.1)(x.sinh())), "CPU")
        x = X[-count:].clone()
        with nbkit.opdiff() as trace:
            x.sinh_()
            for _ in range(50):
                torch.full_like(x, 9.0).mul_(2)
    (op_id,) = trace.captured
    assert trace.ops["op"][op_id] == "aten.sinh_.default"
    assert torch.equal(nbkit.call_of(trace, op_id).args[0], X[-count:])
