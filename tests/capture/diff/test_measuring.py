"""What is measured in one pass, or piece by piece, is what nbkit/numerics/metrics.py says of the whole pair."""

import math

import numpy as np
import pytest
import torch

from nbkit.capture.diff.measuring import NOISE, Meter
from nbkit.capture.replay.chunked import PIECE
from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import Reference
from nbkit.numerics.metrics import measure_one
from nbkit.numerics.precision import PRECISIONS

SHIFT = torch.linspace(-3, 3, 2 * PIECE + 100)
OP = torch.ops.aten.sin.default
ODD = {"none": 1.0, "one far off": 1.001, "one huge": 1e20, "one zero": 0.0}


def wanted(actual, expected, dtype):
    values = actual.double().numpy()
    return measure_one(lambda start, end: values[start:end], expected.numpy(), PRECISIONS[dtype])


@pytest.mark.parametrize("recorder", ["python", "native"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("odd", ODD)
def test_pieces_make_the_metrics_of_the_whole(odd, dtype, recorder, monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", recorder)
    x = SHIFT.to(getattr(torch, dtype))
    actual = x.sin()
    actual[PIECE + 7] *= ODD[odd]
    call = Reference("cpu").copy(traits_of(OP), (x,), {})
    found = Meter().measure_in_pieces(actual, call.pieces(), PRECISIONS[dtype])
    # Sums of another order; that of signed errors is small beside those that it is made of.
    bound = 1e-12 * float((actual.double() - x.double().sin()).abs().sum())
    np.testing.assert_allclose(found, np.ravel(wanted(actual, x.double().sin(), dtype)), rtol=1e-12, atol=bound)


def test_a_result_that_is_not_finite_is_left_to_the_whole():
    actual = SHIFT.sin()
    actual[5] = math.nan
    call = Reference("cpu").copy(traits_of(OP), (SHIFT,), {})
    assert Meter().measure_in_pieces(actual, call.pieces(), PRECISIONS["float32"]) is None


@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x[::2], lambda x: x[: 2 * PIECE].reshape(2, PIECE).T])
def test_a_large_pair_in_any_layout(layout):
    meter = Meter()
    if meter.library is None:
        pytest.skip("numpy measures without the native recorder")
    actual, expected = layout(SHIFT.sin()), layout(SHIFT.double()).sin()
    found = meter.measure(actual, expected, PRECISIONS["float32"])
    assert found is not None and found.piece_noise is not None
    assert found.piece_noise.max() == found.numbers[NOISE]
    metrics = wanted(actual.reshape(-1), expected.reshape(-1), "float32")
    np.testing.assert_allclose(found.numbers, np.ravel(metrics), rtol=1e-9)
