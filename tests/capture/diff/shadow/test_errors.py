"""Norm ratios, by hand."""

from math import inf, isnan, nan

import pytest
import torch

import nbkit
from nbkit.capture.diff.shadow.errors import norm_ratio
from tests.capture.diff.planted import only, with_fault
from tests.capture.diff.shadow.runs import against


@pytest.mark.parametrize(
    ("found", "wanted", "ratio"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 9.0], [3.0, 4.0], 1.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([1.0, 0.0], [0.0, 0.0], inf),
        ([nan, 4.0], [nan, 4.0], 0.0),
        ([nan, 8.0], [nan, 4.0], 1.0),
        ([inf, 8.0], [inf, 4.0], 1.0),
        ([inf, 4.0], [-inf, 4.0], inf),
        ([nan, 4.0], [1.0, 4.0], inf),
        ([1.0, 4.0], [nan, 4.0], inf),
        ([3e300, 0.0], [1e300, 0.0], 2.0),
        ([3 + 4j, 0j], [3 - 4j, 0j], 1.6),
        ([], [], 0.0),
    ],
)
def test_the_ratio_of_norms(found, wanted, ratio):
    dtype = torch.complex128 if any(isinstance(one, complex) for one in found) else torch.float64
    assert norm_ratio(torch.tensor(found, dtype=dtype), torch.tensor(wanted, dtype=dtype)) == pytest.approx(ratio)


def test_integers_bools_and_quantized_numbers_are_numbers():
    assert norm_ratio(torch.tensor([True, False]), torch.tensor([True, True])) == pytest.approx(2**-0.5)
    quantized = torch.quantize_per_tensor(torch.tensor([3.0, 2.0]), 1.0, 0, torch.qint8)
    assert norm_ratio(quantized, torch.tensor([3.0, 4.0])) == pytest.approx(0.4)
    assert not isnan(norm_ratio(torch.tensor([1, 2]), torch.tensor([1, 2])))


def test_a_nan_behind_a_mask_is_no_noise():
    def step():
        mask = torch.full((3, 3), -inf, device="sim").triu(1)
        return (torch.ones(3, 3, device="sim") + mask).softmax(-1) @ torch.ones(3, 1, device="sim")

    device = nbkit.SimulatedDevice()
    with device.planted(nbkit.Fault("_softmax", "nan_masked_rows")):
        meta = against(step).meta
    places = [meta[name]["op"] for name in ("first_divergence", "half_precision_lost_at", "largest_growth")]
    assert places == ["aten._softmax.default"] * 3


def test_a_result_of_another_shape_has_no_errors():
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    cut = with_fault(lambda: x.exp(), "aten.exp.default", lambda func, args, out: out[:2], against="cpu:float64")
    row = only(cut)
    assert row["status"] == "shape" and row[["local_error", "total_error"]].isna().all()


def test_what_follows_a_result_of_another_shape_begins_anew_with_the_values_of_the_step():
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    cut = with_fault(
        lambda: x.exp() * 3, "aten.exp.default", lambda func, args, out: out[:2].clone(), against="cpu:float64"
    )
    (follows,) = cut.diffs[cut.diffs["op"] == "aten.mul.Tensor"].to_dict("records")
    assert follows["status"] == "ok" and follows["total_error"] < 1e-6
    assert "aten.exp.default gives another shape than in the step" in str(cut.meta)
