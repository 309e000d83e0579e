"""Gradients that are zero by the form of a right step are hints with the reason; the same of a fault is a warning."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import nbkit

BY_HAND, FUSED = "by hand", "fused"


class Attention(nn.Module):
    """Attention over the positions of x, and a residual."""

    def __init__(self, kind):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))
        self.kind = kind

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.kind == FUSED:
            return x + functional.scaled_dot_product_attention(q, k, v)
        return x + (q @ k.mT / 8**0.5).softmax(-1) @ v


class Decoder(nn.Module):
    """Begins with queries of zeros, as DETR does."""

    def __init__(self):
        super().__init__()
        self.at, self.value, self.out = nn.Parameter(torch.randn(5, 8)), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        start = torch.zeros_like(self.at)
        return self.out((self.at + self.value(start)).relu() + x.mean(1, keepdim=True))


class Lengths(nn.Module):
    """Predicts lengths, of which the loss sees a mask alone, as VITS does."""

    def __init__(self):
        super().__init__()
        self.length, self.out = nn.Linear(8, 1), nn.Linear(8, 8)

    def forward(self, x):
        shown = torch.arange(4).view(1, 4, 1) < 10 * self.length(x).exp().sum(1, keepdim=True)
        return self.out(x) * shown


def audited(model, x, steps=4):
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with nbkit.opaudit() as trace:
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).pow(2).sum().backward()
            optimizer.step()
    return list(trace.findings[["rule", "severity", "message"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("kind", [BY_HAND, FUSED])
def test_a_softmax_over_one_position_gives_its_scores_no_gradient(kind):
    ((rule, severity, message),) = audited(Attention(kind), torch.randn(3, 1, 8))
    assert (rule, severity) == ("zero_gradient", "hint")
    assert "of q, k (4 tensors)" in message
    assert message.endswith("at all 4 steps: they only reach a softmax over one position, which is 1 whatever they are")
    assert audited(Attention(kind), torch.randn(3, 2, 8)) == []


def test_what_begins_at_zero_gives_its_weight_no_gradient():
    ((rule, severity, message),) = audited(Decoder(), torch.randn(2, 7, 8))
    assert (rule, severity) == ("zero_gradient", "hint")
    assert message.endswith("of value.weight is exactly 0 in every element at all 4 steps: what goes into it is 0, "
                            "and no parameter makes it")  # fmt: skip


def test_zeros_that_a_parameter_makes_are_a_fault():
    class Dead(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)
            nn.init.constant_(self.first.bias, -100.0)

        def forward(self, x):
            return self.last(self.first(x).relu())

    found = {severity for rule, severity, message in audited(Dead(), torch.randn(3, 8)) if rule == "zero_gradient"}
    assert found == {"warning"}


def test_a_choice_has_no_gradient_by_its_nature():
    ((rule, severity, message),) = audited(Lengths(), torch.randn(2, 4, 8))
    assert (rule, severity) == ("no_gradient", "hint")
    assert message.startswith(
        "length (2 tensors) get no gradient; the loss gets nothing but a choice that aten.lt makes"
    )
