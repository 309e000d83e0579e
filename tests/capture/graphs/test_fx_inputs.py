import torch
from torch import nn

from nbkit.capture.graphs.fx_inputs import inputs_of


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.free = nn.Parameter(torch.ones(2))
        self.weight = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("saved", torch.ones(2))
        self.register_buffer("table", torch.ones(2), persistent=False)

    def forward(self, x):
        return x * self.free + self.weight * self.saved + self.table


def test_inputs_say_what_is_frozen_and_what_is_not_saved():
    inputs = inputs_of(torch.export.export(Frozen(), (torch.ones(2),))).values()
    assert {(one.kind, one.name): one.attributes for one in inputs} == {
        ("parameter", "free"): {},
        ("parameter", "weight"): {"requires_grad": False},
        ("buffer", "saved"): {},
        ("buffer", "table"): {"persistent": False},
        ("input", "x"): {},
    }
