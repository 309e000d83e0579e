"""Tests sums in another order: right within rounding, and other bits where the order is another."""

import pytest
import torch

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle


def planted_sums(device, fault, compute, *inputs, times=1):
    with device.planted(fault) as planted:
        results = [compute(*(tensor.to("sim") for tensor in inputs)).cpu() for _ in range(times)]
    return results, planted.report()


@pytest.mark.parametrize("kind", ["unordered_sum", "split_sum", "tail_rows"])
def test_sums_are_right_within_rounding(device, kind):
    a, b = torch.rand(3, 200), torch.rand(200, 5)
    (actual,), report = planted_sums(device, Fault("mm", kind), torch.mm, a, b)
    assert report["status"].tolist() == ["changed"]
    assert not torch.equal(actual, a @ b)
    assert torch.allclose(actual.double(), a.double() @ b.double(), rtol=1e-6)


def test_an_unordered_sum_differs_from_run_to_run(device):
    results, _ = planted_sums(device, Fault("sum", "unordered_sum"), torch.sum, torch.rand(500), times=8)
    assert len({result.item() for result in results}) > 1


def test_a_split_sum_depends_on_the_number_of_rows(device):
    a, b = torch.rand(16, 300), torch.rand(300, 5)
    (whole,), report = planted_sums(device, Fault("mm", "split_sum"), torch.mm, a, b)
    assert torch.equal(whole, a @ b)
    assert report["message"].tolist() == ["no call that was due had so few rows"]
    (half,), _ = planted_sums(device, Fault("mm", "split_sum"), torch.mm, a[:8], b)
    assert torch.equal(half, a[:8, :150] @ b[:150] + a[:8, 150:] @ b[150:])


def test_only_rows_beyond_the_last_tile_are_added_otherwise(device):
    a, b = torch.rand(7, 300), torch.rand(300, 5)
    (actual,), _ = planted_sums(device, Fault("mm", "tail_rows", 4), torch.mm, a, b)
    assert torch.equal(actual[:4], (a @ b)[:4])
    assert torch.equal(actual[4:], (a[:, :150] @ b[:150] + a[:, 150:] @ b[150:])[4:])


def test_threads_are_parts(device):
    x, threads = torch.rand(999), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        (alone,), report = planted_sums(device, Fault("sum", "thread_sum"), torch.sum, x)
        assert report["status"].tolist() == ["not reached"]
        assert torch.equal(alone, x.sum())
        torch.set_num_threads(2)
        (parts,), _ = planted_sums(device, Fault("sum", "thread_sum"), torch.sum, x)
        assert torch.equal(parts, x[:500].sum() + x[500:].sum())
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("kind", ["split_sum", "tail_rows"])
def test_what_has_no_rows_is_left_alone(device, kind):
    assert "gives no rows" in obstacle(device, "sum", kind, torch.sum, torch.ones(5))
