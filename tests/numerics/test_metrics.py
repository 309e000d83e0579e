"""Tests metrics of pairs, each definition against literal values; docs/development/known_defects.md has the numbers."""

import numpy as np
import pytest
import torch

from nbkit.numerics.metrics import CHUNK, FIRST, measure, measure_one, rms
from nbkit.numerics.pairs import Pair, measured_pairs
from nbkit.numerics.precision import PRECISIONS

INF, NAN = np.inf, np.nan


def metrics(actual, expected, dtype="float32"):
    """Returns all columns of one pair, as a dictionary."""
    arrays = [np.asarray(side).reshape(-1) for side in (actual, expected)]
    if dtype is not None:
        arrays = [side.astype(np.complex128 if np.iscomplexobj(side) else np.float64) for side in arrays]
    found = measure(*arrays, FIRST, PRECISIONS.get(dtype))
    names = (*found._fields, "mean_abs_error", "cosine_similarity", "bias_ratio")
    return {name: getattr(found, name)[0].item() for name in names}


def test_errors_have_their_definitions():
    found = metrics([1.0, 2.5, 0.0], [1.0, 2.0, 0.0])
    assert (found["max_abs_error"], found["mean_abs_error"], found["max_rel_error"]) == (0.5, 0.5 / 3, 0.25)
    assert metrics([0.0, 1.0], [0.0, 0.0])["max_rel_error"] == INF


def test_a_tensor_against_itself_has_no_error():
    x = torch.randn(1000).double().numpy()
    found = metrics(x, x)
    assert [found[name] for name in ("max_abs_error", "max_rel_error", "max_ulp", "noise_ratio", "bias_ratio")] == [
        0
    ] * 5


def test_two_random_tensors_have_the_errors_torch_finds():
    """Exact maximum, and the relative error of the reference, not of the device value (defect B34)."""
    a, b = torch.randn(2, 700, dtype=torch.float64)
    found = metrics(a.numpy(), b.numpy())
    assert found["max_abs_error"] == (a - b).abs().max().item()
    assert found["max_rel_error"] == pytest.approx(((a - b) / b).abs().max().item(), rel=1e-12)
    assert found["cosine_similarity"] == pytest.approx(torch.cosine_similarity(a, b, dim=0).item(), abs=1e-12)


def test_integers_are_compared_exactly():
    found = metrics(np.arange(10), np.arange(10) * 2, None)
    assert (found["max_abs_error"], found["max_rel_error"], found["noise_ratio"]) == (9, 0.5, INF)
    assert all(metrics(np.array([i]), np.array([2 * i + 10]), None)["max_abs_error"] == i + 10 for i in range(5))


def test_defect_b30_unsigned_integers_do_not_wrap_around():
    assert metrics(np.array([3], dtype=np.uint8), np.array([5], dtype=np.uint8), None)["max_abs_error"] == 2
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert metrics(np.array([low]), np.array([high]), None)["max_abs_error"] == 2.0**64
    assert metrics(np.array([high]), np.array([high - 1]), None)["max_abs_error"] == 1


def test_bools_differ_by_one():
    assert metrics(np.array([1, 0]), np.array([1, 0]), None)["max_abs_error"] == 0
    assert metrics(np.array([1, 0]), np.array([0, 1]), None)["max_abs_error"] == 1


def test_empty_tensors_agree():
    """Defect B10."""
    found = measure_one(lambda start, end: np.zeros(0), np.zeros(0), PRECISIONS["float32"])
    assert (found.max_abs_error[0], found.mean_abs_error[0], found.cosine_similarity[0]) == (0, 0, 1)


def test_cosine_has_a_meaning_everywhere():
    """Defect B31: two zero tensors have cosine 1, not 0."""
    x = np.array([1.0, -2.0, 3.0])
    assert metrics(x, x)["cosine_similarity"] == pytest.approx(1, abs=1e-6)
    assert metrics(x, -x)["cosine_similarity"] == pytest.approx(-1, abs=1e-6)
    assert metrics(0 * x, 0 * x)["cosine_similarity"] == 1
    assert metrics(0 * x, x)["cosine_similarity"] == 0


def test_defect_b32_complex_pairs_use_both_parts():
    found = metrics([1 + 1j], [1 - 1j], "float32")
    assert (found["cosine_similarity"], found["max_abs_error"]) == (0, 2)
    assert metrics([1 + 2.0**-23 * 1j], [1 + 2.0**-22 * 1j], "float32")["max_ulp"] == 2**23


def test_defect_b25_the_reference_is_not_rounded_to_the_device_dtype():
    assert metrics([1.0], [1.003], "bfloat16")["max_abs_error"] == pytest.approx(0.003)


def test_defect_b28_nan_propagates():
    found = metrics([2.0, NAN, 1.5], [1.0, 1.0, 1.0])
    assert all(np.isnan(found[name]) for name in ("max_abs_error", "mean_abs_error", "max_rel_error", "max_ulp"))
    assert (found["actual_nan_count"], found["expected_nan_count"], found["noise_ratio"]) == (1, 0, INF)


def test_defect_b29_equal_infinities_and_nans_agree_and_are_counted():
    found = metrics([INF, -INF, NAN, 1.0], [INF, -INF, NAN, 1.0])
    assert [found[name] for name in ("max_abs_error", "max_rel_error", "max_ulp", "noise_ratio")] == [0] * 4
    assert (found["actual_inf_count"], found["expected_inf_count"], found["actual_nan_count"]) == (2, 2, 1)
    assert found["cosine_similarity"] == 1
    assert metrics([INF], [-INF])["noise_ratio"] == INF
    assert metrics([INF], [1.0])["max_abs_error"] == INF


def test_overflow_of_the_dtype_agrees_with_a_reference_beyond_its_range():
    assert metrics([INF], [70000.0], "float16")["noise_ratio"] == 0
    assert metrics([-INF], [70000.0], "float16")["noise_ratio"] == INF
    assert metrics([INF], [60000.0], "float16")["noise_ratio"] == INF
    assert metrics([NAN], [500.0], "float8_e4m3fn")["noise_ratio"] == 0
    assert metrics([448.0], [500.0], "float8_e4m3fn")["noise_ratio"] == 0
    assert metrics([NAN], [300.0], "float8_e4m3fn")["noise_ratio"] == INF


def test_defect_b33_small_denominators_do_not_vanish_in_half_precision():
    assert metrics([0.0], [0.1], "float16")["max_rel_error"] == 1


def test_signed_zeros_agree():
    found = metrics([0.0, -0.0], [-0.0, 0.0])
    assert (found["max_abs_error"], found["max_rel_error"], found["max_ulp"]) == (0, 0, 0)


def test_the_bias_ratio_finds_a_lean_far_below_eps():
    expected = torch.randn(20000, dtype=torch.float64).numpy()
    rounded = expected.astype(np.float32).astype(np.float64)
    assert metrics(rounded, expected)["bias_ratio"] < 5
    assert metrics(rounded + 1e-8, expected)["bias_ratio"] > 20


def test_pieces_and_batches_give_what_a_single_measurement_gives():
    sizes = (3, CHUNK + 5, 1, 2 * CHUNK)
    expected = [np.random.default_rng(0).standard_normal(size) for size in sizes]
    actual = [side.astype(np.float32).astype(np.float64) for side in expected]
    single = [
        measure_one(lambda s, e, a=a: a[s:e], b, PRECISIONS["float32"]) for a, b in zip(actual, expected, strict=True)
    ]
    starts = np.cumsum([0, *sizes[:-1]])
    batch = measure(np.concatenate(actual), np.concatenate(expected), starts, PRECISIONS["float32"])
    for name in batch._fields:
        np.testing.assert_allclose(getattr(batch, name), [getattr(one, name)[0] for one in single], rtol=1e-9)


def test_the_root_mean_square_is_of_the_finite_values_and_does_not_overflow():
    assert rms(np.array([3.0, 4.0, 0.0, 0.0])) == 2.5
    assert rms(np.array([3.0, np.nan, 4.0, np.inf])) == pytest.approx((25 / 2) ** 0.5)
    assert rms(np.array([3e200, 4e200])) == pytest.approx(25**0.5 * 1e200 / 2**0.5)
    assert rms(np.array([])) == rms(np.array([np.nan])) == rms(np.zeros(3)) == 0.0


@pytest.mark.parametrize("size", [50, CHUNK + 5], ids=["at once", "piece by piece"])
def test_a_complex_pair_beside_a_real_one_is_measured_in_both_parts(size):
    a, b = torch.randn(2, size, dtype=torch.complex64)
    sides = [(b.numpy(), a.numpy()), (b.real.numpy(), a.real.numpy()), (a.numpy(), a.numpy())]
    of_both, of_real, of_equal = measured_pairs([Pair(*each, PRECISIONS["float32"]) for each in sides])
    assert of_both["max_abs_error"] == pytest.approx((a - b).abs().max().item(), rel=1e-6)
    assert of_real["max_abs_error"] == pytest.approx((a.real - b.real).abs().max().item(), rel=1e-6)
    assert (of_equal["max_abs_error"], of_equal["cosine_similarity"]) == (0, pytest.approx(1))
