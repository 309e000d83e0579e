"""Tests sums of wrong terms, counts, variances and starts."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt


@pytest.mark.parametrize(
    ("op", "compute", "terms"),
    [
        ("mm", lambda x: x @ torch.ones(4, 1, device=x.device), (1, 4)),
        ("addmm", lambda x: torch.addmm(x[:, :1] * 0, x, torch.ones(4, 1, device=x.device)), (1, 4)),
        ("sum", lambda x: x.sum(1), (1, 4)),
        ("sum", lambda x: x.sum(0), (4, 1)),
        ("sum", torch.sum, (4,)),
        ("mean", lambda x: x.mean(1) * 4, (1, 4)),
        ("convolution", lambda x: F.conv1d(x, torch.ones(1, 4, 1, device=x.device)), (1, 4, 1)),
    ],
)
def test_the_last_terms_are_left_out_or_counted_twice(device, op, compute, terms):
    x = torch.tensor([1.0, 10.0, 100.0, 1000.0]).view(terms)
    assert spoilt(device, Fault(op, "dropped_terms"), compute, x)[1].item() == 111
    assert spoilt(device, Fault(op, "dropped_terms", 2), compute, x)[1].item() == 11
    assert spoilt(device, Fault(op, "repeated_terms"), compute, x)[1].item() == 2111


def test_a_mean_is_divided_by_one_more(device):
    x = torch.ones(1, 1, 2, 2)
    assert spoilt(device, Fault("mean", "wrong_count"), torch.mean, x)[1].item() == pytest.approx(4 / 5)
    assert spoilt(device, Fault("avg_pool2d", "wrong_count"), lambda x: F.avg_pool2d(x, 2), x)[
        1
    ].item() == pytest.approx(4 / 5)
    _, actual = spoilt(
        device, Fault("nll_loss_forward", "wrong_count"), F.nll_loss, -torch.eye(3), torch.tensor([0, 1, 2])
    )
    assert actual.item() == pytest.approx(3 / 4)


@pytest.mark.parametrize("correction", [0, 1])
def test_variances_take_the_other_count(device, correction):
    x = torch.randn(3, 5)
    _, actual = spoilt(device, Fault("var", "biased_variance"), lambda x: x.var(1, correction=correction), x)
    torch.testing.assert_close(actual, x.var(1, correction=1 - correction))


def test_norms_take_the_other_count(device):
    x, weight = torch.randn(4, 6), torch.randn(6)
    _, actual = spoilt(
        device,
        Fault("native_layer_norm", "biased_variance"),
        lambda x, w: F.layer_norm(x, (6,), w, w, 1e-12),
        x,
        weight,
    )
    normed = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
    torch.testing.assert_close(actual, normed * weight + weight)
    _, actual = spoilt(
        device, Fault("native_layer_norm", "biased_variance"), lambda x: F.layer_norm(x, (6,), None, None, 1e-12), x
    )
    torch.testing.assert_close(actual, normed)


@pytest.mark.parametrize(
    ("op", "norm"),
    [
        ("native_group_norm", lambda x, w: F.group_norm(x, 3, w, w, 1e-12)),
        ("native_batch_norm", lambda x, w: F.batch_norm(x, None, None, w, w, training=True, eps=1e-12)),
    ],
)
def test_norms_of_images_take_the_other_count_and_add_the_bias_of_each_channel(device, op, norm):
    x, weight = torch.randn(1, 3, 2, 2), torch.randn(3)
    _, actual = spoilt(device, Fault(op, "biased_variance"), norm, x, weight)
    normed = (x - x.mean((2, 3), keepdim=True)) / x.std((2, 3), keepdim=True)
    torch.testing.assert_close(actual, normed * weight.view(3, 1, 1) + weight.view(3, 1, 1))


def test_maxima_begin_at_zero_and_scans_leave_out_their_place(device):
    x = torch.tensor([[-1.0, -2.0], [3.0, 4.0]])
    assert spoilt(device, Fault("amax", "zero_start_maximum"), lambda x: x.amax(1), x)[1].tolist() == [0.0, 4.0]
    assert spoilt(device, Fault("cumsum", "exclusive_scan"), lambda x: x.cumsum(1), x)[1].tolist() == [[0, -1], [0, 3]]


def test_what_they_cannot_befall(device):
    for kind, reason in (
        ("dropped_terms", "is no sum or product"),
        ("wrong_count", "is no mean"),
        ("biased_variance", "takes no variance"),
        ("zero_start_maximum", "is no maximum"),
        ("exclusive_scan", "is no running sum"),
    ):
        assert reason in obstacle(device, "exp", kind, torch.exp, torch.ones(3))
