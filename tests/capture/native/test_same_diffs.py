"""opdiff finds the same where torch's observer records as below the mode in Python, up to the last digits of sums."""

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.compat.torch_versions import PARAMETER_MUTATIONS
from tests.capture.diff.test_clean_steps import steps

# Sums of another order: to 12 digits. The others are the same to the bit.
SUMMED = ["mean_abs_error", "cosine_similarity", "noise_ratio", "bias_ratio"]
DTYPES = ["float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "complex64", "int64", "uint8", "bool"]
ODD = [0.0, -0.0, 1.0, -2.5, 1e-45, -1e-310, 1e-320, 7e4, 3e38, -1e300, 1e39, float("inf"), -float("inf"), float("nan")]


def found(make, recorder, monkeypatch, **options):
    monkeypatch.setenv("NBKIT_RECORDER", recorder)
    torch.manual_seed(0)
    step = make()
    with nbkit.opdiff(**options) as trace:
        step()
    assert trace.meta["recorder"] == {"python": "python", "native": "observer"}[recorder]
    return trace


def assert_same(make, monkeypatch, **options):
    first, second = (found(make, recorder, monkeypatch, **options) for recorder in ("python", "native"))
    # op_id: the mode in Python has rows of detach() that torch's observer does not report.
    exact = [trace.diffs.drop(columns=[*SUMMED, "op_id"]) for trace in (first, second)]
    pd.testing.assert_frame_equal(*exact, check_exact=True)
    assert named(first) == named(second)
    pd.testing.assert_frame_equal(first.diffs[SUMMED], second.diffs[SUMMED], rtol=1e-12, atol=1e-12)
    assert counted(first) == counted(second)
    return second


def named(trace):
    return trace.ops.set_index("op_id")["op"].loc[trace.diffs["op_id"]].tolist()


def counted(trace):
    left_out = {reason: count for reason, count in trace.meta["skipped"].items() if reason.startswith("not compared")}
    if not PARAMETER_MUTATIONS:  # torch 2.8 and older show the mode in Python each detach() that opdiff's makes: views
        left_out.pop("not compared: views", None)
    return left_out, *(trace.meta[name] for name in ("compared_ops", "mismatches", "notes"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model", ["llama", "rwkv4"])
def test_diffs_of_a_training_step(model, dtype, monkeypatch):
    trace = assert_same(lambda: steps(model, getattr(torch, dtype), "adamw"), monkeypatch)
    assert len(trace.diffs) > 50


def pointwise(x):
    results = [x + x, x * 1, x.clone(), x == x, x.flip(0), x.sort(), x.cumsum(0), x.sum(), torch.cat([x, x])]
    if not x.dtype.is_complex:
        results += [x.relu(), x.clamp(0, 1), x.to(torch.float32), x > 1, *([x.amax(), x.argmax()] if len(x) else [])]
    return results


def tried(work, x):
    """The op has no kernel for every dtype."""
    try:
        work(x)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):  # sort() of complex numbers: 2.15, 2.8
        assert x.dtype is not torch.float32


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("times", [0, 1, 3000])
def test_diffs_of_odd_values(dtype, times, monkeypatch):
    x = torch.tensor(ODD * times, dtype=torch.float64)
    x = x.nan_to_num(0) if dtype in ("int64", "uint8", "bool") else x
    assert_same(lambda: lambda: tried(pointwise, x.to(getattr(torch, dtype))), monkeypatch)
