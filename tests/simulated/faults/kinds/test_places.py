"""Tests right numbers in wrong places."""

import torch

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt

X = torch.arange(8.0).view(2, 4) + 1


def made(device, kind, x=X, **options):
    """Returns what a product with 1 gives under a fault."""
    return spoilt(device, Fault("mul", kind, **options), lambda x: x * 1, x)[1].tolist()


def test_results_shifted_dropped_repeated_and_interleaved(device):
    assert made(device, "shifted_result") == [[4, 1, 2, 3], [8, 5, 6, 7]]
    assert made(device, "dropped_tile") == [[1, 2, 3, 0], [5, 6, 7, 0]]
    assert made(device, "dropped_tile", size=3) == [[1, 0, 0, 0], [5, 0, 0, 0]]
    assert made(device, "repeated_row") == [[1, 2, 3, 4]] * 2
    assert made(device, "interleaved_halves") == [[1, 3, 2, 4], [5, 7, 6, 8]]


def test_gates_of_an_lstm_and_of_a_gru_change_places(device):
    for width, order in ((8, [2, 3, 0, 1, 4, 5, 6, 7]), (9, [3, 4, 5, 0, 1, 2, 6, 7, 8])):
        expected, actual = spoilt(
            device, Fault("mm", "swapped_gates"), torch.mm, torch.randn(2, 3), torch.randn(3, width)
        )
        assert torch.equal(actual, expected[:, order])


def test_two_results_change_places(device):
    def both(x):
        return torch.stack(torch.aminmax(x, dim=1))

    _, actual = spoilt(device, Fault("aminmax", "swapped_results"), both, X)
    assert actual.tolist() == [[4, 8], [1, 5]]


def test_the_last_of_a_list_stays_as_it_was(device):
    tensors = [torch.zeros(2, device="sim"), torch.zeros(3, device="sim")]
    with device.planted(Fault("_foreach_add_", "dropped_last_of_list")):
        torch._foreach_add_(tensors, 1.0)
    assert [tensor.tolist() for tensor in tensors] == [[1, 1], [0, 0, 0]]


def test_what_they_cannot_befall(device):
    assert "has no floating-point matrix" in obstacle(device, "mul", "repeated_row", lambda x: x * 1, torch.ones(3))
    assert "is no matrix product" in obstacle(device, "mul", "swapped_gates", lambda x: x * 1, X)
    assert "has one result" in obstacle(device, "mul", "swapped_results", lambda x: x * 1, X)
    assert "writes to no list" in obstacle(device, "mul", "dropped_last_of_list", lambda x: x * 1, X)
    assert "writes to no list" in obstacle(device, "cat", "dropped_last_of_list", lambda x: torch.cat([x, x]), X)
