"""opalign's verdicts on small pairs of bench/align_verdicts.py: forms that agree, and one planted difference."""

import pytest

from bench.align_verdicts import Attention, Net, judged, made


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", [Net, Attention])
def test_a_model_agrees_with_itself_written_by_hand(kind, dtype, scale):
    is_right, said, _ = judged(made(kind, "by hand", dtype, scale, 0.0, ""))
    assert is_right, said


@pytest.mark.parametrize("size", [2.0, 30.0, 1e6])
@pytest.mark.parametrize("planted", ["factor", "sum", "channel"])
def test_a_planted_difference_beyond_rounding_is_found(planted, size):
    is_right, said, _ = judged(made(Net, "split", "bfloat16", 1e3, size, planted))
    assert is_right, said


def test_a_product_that_is_near_to_its_sum_with_a_small_bias_is_not_taken_for_it():
    """One op of torch, two of ONNX: the product alone is as near as rounding in float16, the sum is nearer."""
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)
    is_right, said, _ = judged(made(Net, "onnx", "float16", 100.0, 0.0, ""))
    assert is_right, said
