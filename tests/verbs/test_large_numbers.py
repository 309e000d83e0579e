"""opalign on weights and activations with a few very large numbers, as language models have: they are numbers."""

import pytest
import torch
from torch import Tensor, nn

import nbkit

X = torch.linspace(0.1, 1.1, 32).reshape(4, 8)


class Spiking(nn.Module):
    """A row of weights is huge, and so is one channel: 3,600 to 35,000 where the others are below 1."""

    def __init__(self, most: float = float("inf"), row: float = 4000.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down, self.most = nn.Linear(8, 64), nn.Linear(64, 4), most
        with torch.no_grad():
            self.up.weight[3] = row

    def forward(self, x: Tensor) -> Tensor:
        h = self.up(x)
        h = h if self.most == float("inf") else h.clamp(-self.most, self.most)
        return self.down(torch.log1p(h.abs()))


def first(left: nn.Module, right: nn.Module) -> dict | None:
    return nbkit.opalign(left, right, inputs=(X,)).meta["first_divergence"]


def test_a_spike_that_one_side_clamps_is_a_difference():
    found = first(Spiking(), Spiking(most=1e4))
    assert found["right"]["op"] == "aten.clamp.default" and "Inf" not in found["message"]


@pytest.mark.parametrize("row", [5000.0, -4001.0])
def test_weights_of_a_huge_row_are_numbers(row):
    found = first(Spiking(), Spiking(row=row))
    assert found["left"]["name"] == "up.weight" and found["kind"] != "nan"
    assert found["error"] == pytest.approx(abs(row - 4000) / 4000, rel=1e-3)


def test_a_spike_agrees_with_itself():
    assert first(Spiking(), Spiking()) is None
