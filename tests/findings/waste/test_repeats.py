"""Values that several modules compute anew: what is named, and the right models that are not."""

import json

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.findings.waste.repeats import _repeats
from nbkit.findings.waste.step import RecordedStep
from nbkit.schema import PARAMETERS
from tests.findings.waste.steps import found, only
from tests.support.fakes import make_ops, make_tensors

T, D = 32, 16
X = torch.randn(2, T, D)


def tables(length=T, base=10_000.0):
    angles = torch.arange(length)[:, None] / base ** (torch.arange(D) / D)
    return angles.cos(), angles.sin()


class Layer(nn.Module):
    def __init__(self, number=0):
        super().__init__()
        self.number, self.linear = number, nn.Linear(D, D)

    def forward(self, x, *shared):
        return self.linear(x)


class Rotary(Layer):
    """Makes the tables of its positions itself."""

    def forward(self, x, *shared):
        cos, sin = tables()
        return self.linear(x * cos + x.flip(-1) * sin)


class Masked(Layer):
    """Fills a mask of its own in place."""

    def forward(self, x, *shared):
        hidden = torch.zeros(T, T)
        hidden.fill_(float("-inf")).triu_(1)
        return (self.linear(x) @ x.mT + hidden).softmax(-1) @ x


class Given(Layer):
    def forward(self, x, *shared):
        cos, sin = shared
        return self.linear(x * cos + x.flip(-1) * sin)


class Other(Layer):
    """Makes tables that no other layer has."""

    def forward(self, x, *shared):
        cos, _ = tables(base=100.0 * (self.number + 1))
        return self.linear(x * cos)


class Noisy(Layer):
    def forward(self, x, *shared):
        return self.linear(x + torch.randn(T, D))


class Dropped(Layer):
    def forward(self, x, *shared):
        return self.linear(x * F.dropout(torch.ones(T, D), 0.1))


class Collecting(Layer):
    """Has memory of its own to write into."""

    def forward(self, x, *shared):
        out = torch.zeros(2, T, D)
        return out.index_add(1, torch.arange(T), self.linear(x))


class Few(Layer):
    def forward(self, x, *shared):
        return self.linear(x * torch.arange(D))


class Changing(Layer):
    """Reads a buffer of all that each layer changes."""

    state = torch.ones(T, D)

    def forward(self, x, *shared):
        Changing.state.mul_(2)
        return self.linear(x + Changing.state.sqrt())


class Attending(Layer):
    """torch makes numbers of the mask, in each call of its function."""

    def forward(self, x, *shared):
        x = self.linear(x)
        return F.scaled_dot_product_attention(x, x, x, attn_mask=shared[0])


class Heads(nn.Module):
    """Reads one input several times, which torch.autocast casts each time."""

    def __init__(self):
        super().__init__()
        self.readers = nn.ModuleList(nn.Linear(D, 4) for _ in range(4))

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return sum(reader(x) for reader in self.readers).float().sum()


class Model(nn.Module):
    def __init__(self, kind, count=4):
        super().__init__()
        self.layers = nn.ModuleList(kind(number) for number in range(count))

    def forward(self, x, *shared):
        for layer in self.layers:
            x = layer(x, *shared)
        return x.sum()


def trained(kind, *shared, count=4):
    model = Model(kind, count)
    return lambda: model(X, *shared).backward()


@pytest.mark.parametrize(("kind", "op"), [(Rotary, "aten.div.Tensor"), (Masked, "aten.triu_.default")])
def test_what_each_layer_computes_anew_is_named(kind, op):
    finding = only(trained(kind))
    assert (finding.rule, finding.severity) == ("repeated_work", "hint")
    assert finding.op == op
    assert finding.message.startswith("4 modules compute the same values, each for itself, by this line")
    evidence = json.loads(finding.evidence)
    assert evidence["modules"] == [f"layers.{number}" for number in range(4)]
    assert finding.effect_bytes >= 3 * 4 * T * D


def test_each_step_is_looked_at_alone():
    model = Model(Rotary)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step():
        for _ in range(2):
            optimizer.zero_grad()
            model(X).backward()
            optimizer.step()

    with nbkit.opaudit() as trace:
        step()
    (finding,) = trace.findings[trace.findings["rule"] == "repeated_work"].itertuples()
    first = trace.ops.iloc[json.loads(finding.evidence)["first_op_ids"]]
    assert set(first["step"]) == {0, 1} and set(first["module"]) == {"layers.0"}


def twice():
    """The whole model runs twice on the same data: in the same modules."""
    model = Model(Layer)
    (model(X) + model(X)).backward()


def one_layer_often():
    layer = Rotary()
    x = X
    for _ in range(4):
        x = layer(x)
    x.sum().backward()


RIGHT = {
    "handed to all": lambda: trained(Given, *tables())(),
    "in the model, once": lambda: trained(Given, *tables())(),
    "other tables": lambda: trained(Other)(),
    "noise": lambda: trained(Noisy)(),
    "dropout": lambda: trained(Dropped)(),
    "memory to write into": lambda: trained(Collecting)(),
    "a few numbers": lambda: trained(Few)(),
    "two layers": lambda: trained(Rotary, count=2)(),
    "a buffer that changes": lambda: trained(Changing)(),
    "fused attention": lambda: trained(Attending, torch.ones(T, T, dtype=torch.bool).tril())(),
    "casts of autocast": lambda: Heads()(X.clone().requires_grad_()).backward(),
    "one layer, called often": one_layer_often,
    "the model twice": twice,
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_step_is_not_named(case):
    assert found(RIGHT[case]) == []


def test_a_write_to_one_tensor_without_a_storage_is_none_to_another():
    called = (("aten.mul.Tensor", "a"), ("aten.neg.default", None), ("aten.mul.Tensor", "b"))
    ops = make_ops(*({"op": op, "model": "Net", "module": module} for op, module in called))
    tensors = make_tensors(
        (0, "input", 5), (0, "output", 1), (1, "input", 7), (1, "output", 9), (2, "input", 5), (2, "output", 2)
    ).assign(numel=1_000, storage_id=pd.array([None, 1, None, None, None, 2], "Int64"))
    [repeat] = _repeats(RecordedStep(ops, {}, tensors, PARAMETERS.frame(), {}))
    assert repeat[:2] == (2, 0)
