"""Tests accumulators that keep too few bits against sums made one by one in torch's own bfloat16."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from nbkit.simulated.faults.kinds.accumulation import rounded
from tests.simulated.faults.spoilt import obstacle, spoilt

KIND = "low_precision_accumulation"


def test_rounding_to_seven_bits_is_torchs_bfloat16():
    x = torch.randn(1000) * 10.0 ** torch.randint(-20, 20, (1000,))
    assert torch.equal(rounded(x, 7), x.bfloat16().float())
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, 1.0])
    assert torch.equal(rounded(special, 7), special)
    assert rounded(torch.tensor(torch.nan), 7).isnan()


def test_a_sum_is_rounded_after_every_term(device):
    x = torch.rand(64)
    _, actual = spoilt(device, Fault("sum", KIND), torch.sum, x)
    total = torch.tensor(0.0, dtype=torch.bfloat16)
    for term in x:
        total = (total.float() + term).bfloat16()
    assert actual.item() == total.item()


@pytest.mark.parametrize(
    ("op", "compute", "shapes"),
    [
        ("mm", torch.mm, [(5, 60), (60, 4)]),
        ("bmm", torch.bmm, [(2, 5, 60), (2, 60, 4)]),
        ("mv", torch.mv, [(5, 60), (60,)]),
        ("addmm", lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), [(5, 4), (5, 60), (60, 4)]),
        ("baddbmm", torch.baddbmm, [(2, 5, 4), (2, 5, 60), (2, 60, 4)]),
        ("sum", lambda x: x.sum((0, 2), keepdim=True), [(4, 3, 30)]),
        ("mean", lambda x: x.mean(1), [(4, 60)]),
        ("convolution", lambda x, w, b: F.conv2d(x, w, b, padding=1), [(2, 6, 5, 5), (3, 6, 3, 3), (3,)]),
    ],
)
def test_fewer_bits_make_larger_errors_in_every_sum(device, op, compute, shapes):
    inputs = [torch.rand(shape) for shape in shapes]
    errors = []
    for bits in (16, 10, 4):
        expected, actual = spoilt(device, Fault(op, KIND, bits), compute, *inputs)
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        errors.append(((actual - expected).abs() / expected.abs()).max().item())
    # All terms are positive: each rounding errs by at most half a unit of the sum so far.
    assert all(error < 64 * 2.0 ** -(bits + 1) for error, bits in zip(errors, (16, 10, 4), strict=True))
    assert errors == sorted(errors)


def test_bfloat16_inputs_lose_bits_too(device):
    a, b = torch.rand(5, 60).bfloat16(), torch.rand(60, 4).bfloat16()
    _, actual = spoilt(device, Fault("mm", KIND, 4), torch.mm, a, b)
    assert actual.dtype == torch.bfloat16


def test_a_sum_of_no_terms_is_zero(device):
    with device.planted(Fault("mm", KIND)) as planted:
        product = torch.mm(torch.ones(2, 0, device="sim"), torch.ones(0, 3, device="sim"))
    assert torch.equal(product.cpu(), torch.zeros(2, 3))
    assert planted.report()["fired"].tolist() == [1]


def test_other_ops_are_left_alone(device):
    assert "no accumulation is known of aten.exp.default; it is of addmm," in obstacle(
        device, "exp", KIND, torch.exp, torch.ones(2)
    )


def test_blocks_are_right_and_added_in_bfloat16(device):
    x = torch.rand(40)
    _, actual = spoilt(device, Fault("sum", "half_precision_blocks", 16), torch.sum, x)
    first, second, third = x[:16].sum(), x[16:32].sum(), x[32:].sum()
    assert actual.item() == ((first + second).bfloat16().float() + third).bfloat16().item()
    _, actual = spoilt(device, Fault("sum", "half_precision_blocks", 40), torch.sum, x)
    assert actual.item() == x.sum().bfloat16().item()
