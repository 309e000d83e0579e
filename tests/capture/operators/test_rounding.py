"""Rounds to 8 bits with and without scales: what is too large, and masks of -inf."""

import pytest
import torch

import nbkit
from nbkit.capture.operators.rounding import lost, rounded

INF = float("inf")
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)


@pytest.mark.parametrize("dtype", EIGHT_BITS)
def test_overflow_is_counted_whether_casts_saturate_or_not(dtype):
    large = torch.finfo(dtype).max
    with nbkit.opcast(dtype, dry_run=True, ops="mul") as trace:
        torch.tensor([large * 2, large * 4, 1.0, 2.0]) * torch.ones(4)
    assert trace.casts["overflow_fraction"].tolist() == [4 / 12, 0, 0]  # of two inputs and the result


@pytest.mark.parametrize(
    ("dtype", "last", "first"),  # the largest number that is rounded to the largest of the dtype, and the next
    [
        (torch.float8_e4m3fn, 464.0, 464.1),
        (torch.float8_e5m2, 61439.0, 61440.0),
        (torch.float8_e4m3fnuz, 247.9, 248.0),
        (torch.float8_e5m2fnuz, 61439.0, 61440.0),
        (torch.float16, 65519.0, 65520.0),
    ],
)
def test_a_number_is_too_large_from_half_a_step_above_the_largest(dtype, last, first):
    assert lost([torch.tensor([last, -last])], dtype, None)["overflow_fraction"] == 0
    assert lost([torch.tensor([first, -first])], dtype, None)["overflow_fraction"] == 1


@pytest.mark.parametrize("scaling", ["none", "tensor", "block"])
def test_scales_are_made_of_finite_numbers(scaling):
    values = torch.tensor([[-INF, 1.0, 0.5, float("nan"), 448.0]])
    made = rounded(values, torch.float8_e4m3fn, scaling)
    assert torch.equal(made.nan_to_num(nan=7.0), values.nan_to_num(nan=7.0))
    assert set(lost([values], torch.float8_e4m3fn, scaling).values()) == {0.0}


@pytest.mark.parametrize("scaling", ["tensor", "block"])
def test_a_scale_too_small_for_a_number_is_none(scaling):
    assert rounded(torch.tensor([1e-45, 0.0]), torch.float8_e5m2, scaling).tolist() == [0.0, 0.0]


def test_masks_of_inf_are_no_error():
    torch.manual_seed(0)
    scores = torch.randn(4, 8, requires_grad=True)
    mask = torch.zeros(4, 8).masked_fill(torch.ones(4, 8).triu(1) > 0, -INF)
    with nbkit.opcast("float8_e4m3fn", dry_run=True, ops="add,_softmax") as trace:
        (scores + mask).softmax(-1).square().sum().backward()
    assert trace.casts["scaling"].tolist() == ["none", "tensor", "block"] * 2
    assert trace.casts["error"].between(1e-4, 0.1).all()
    assert trace.casts["loss_change"].abs().between(1e-7, 0.1).all()
    assert (trace.casts["overflow_fraction"] == 0).all()


def test_inf_where_a_number_is_right_is_an_error():
    with nbkit.opcast("float16", dry_run=True, ops="mul") as trace:
        torch.tensor([3e4, -INF]) * 3
    assert trace.casts["error"].tolist() == [INF]
