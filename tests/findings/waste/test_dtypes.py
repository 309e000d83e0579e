"""Parameters that are cast in each call, products in float64: what is named, and the right steps that are not."""

import json

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.waste.steps import found, only

X = torch.randn(4, 64)


class CastLinear(nn.Linear):
    """Computes in another dtype than its weights have."""

    dtype = torch.bfloat16

    def forward(self, x):
        return F.linear(x.to(self.dtype), self.weight.to(self.dtype), self.bias.to(self.dtype)).float()


class Wide(CastLinear):
    dtype = torch.float64


class Router(nn.Linear):
    def forward(self, x):
        return F.linear(x.float(), self.weight.float(), self.bias.float()).softmax(-1)


class Bfloat16(nn.Linear):
    def forward(self, x):
        return super().forward(x.to(self.weight.dtype))


class Cached(nn.Linear):
    """Casts its weight once, for all calls."""

    cast = None

    def forward(self, x):
        if self.cast is None:
            self.cast = self.weight.to(torch.bfloat16), self.bias.to(torch.bfloat16)
        return F.linear(x.to(torch.bfloat16), *self.cast).float()


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        return x * self.weight.to(torch.bfloat16) + self.weight.to(torch.bfloat16)


def trained(*layers):
    model = nn.Sequential(*layers)
    return lambda: model(X).float().square().mean().backward()


def evaluated(*layers):
    model = nn.Sequential(*layers).eval()

    def step():
        with torch.no_grad():
            model(X)
            model(X)

    return step


def test_weights_that_each_call_casts_are_named():
    finding = only(trained(nn.Linear(64, 64), CastLinear(64, 64), nn.ReLU(), CastLinear(64, 64)))
    assert (finding.rule, finding.severity, finding.count, finding.module) == ("parameter_casts", "hint", 4, "1")
    assert finding.message == (
        "The forward pass casts parameters of 2 modules from float32 to bfloat16 anew in each call, 4 casts in all"
    )
    assert "self.weight.to(self.dtype)" in finding.source_text
    assert finding.effect_bytes == 2 * (64 * 64 + 64) * 2
    assert json.loads(finding.evidence)["parameters"] == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert "torch.autocast" in finding.advice
    assert pd.isna(finding.parameter)  # several: the evidence has them


def test_a_single_weight_that_each_call_casts_is_the_parameter():
    class OneCast(nn.Linear):
        def forward(self, x):
            return F.linear(x.bfloat16(), self.weight.bfloat16()).float()

    layer = OneCast(64, 64, bias=False)
    finding = only(trained(layer, layer))
    assert (finding.rule, finding.parameter) == ("parameter_casts", "0.weight")


def test_weights_that_are_turned_or_made_float64_are_named():
    class Turned(nn.Linear):
        def forward(self, x):
            return x.half() @ self.weight.t().half()

    finding = only(trained(Turned(64, 64), Turned(64, 64)))
    assert (finding.rule, finding.count) == ("parameter_casts", 2)
    assert json.loads(finding.evidence)["parameters"] == ["0.weight", "1.weight"]
    finding = only(trained(Wide(64, 64)))
    assert finding.message == (
        "The forward pass casts 0.weight and 0.bias from float32 to float64 anew in each call, 2 casts in all"
    )
    assert "x.to(weight.dtype)" in finding.advice


def test_casts_without_a_graph_are_named_where_they_come_again():
    assert found(evaluated(CastLinear(64, 64))) == [("parameter_casts", "hint")]
    assert found(evaluated(Cached(64, 64))) == []


PLAIN = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))


def autocast_step():
    with torch.autocast("cpu", torch.bfloat16):
        PLAIN(X).float().mean().backward()


def cast_weights():
    """Weights of another dtype are made once for the step, outside of the model."""
    weights = {name: parameter.to(torch.bfloat16) for name, parameter in PLAIN.named_parameters()}
    torch.func.functional_call(PLAIN, weights, (X.bfloat16(),)).float().mean().backward()


RIGHT = {
    "autocast": autocast_step,
    "cast once outside": cast_weights,
    "weights of a norm": trained(Norm()),
    "a router that computes in more bits": trained(Bfloat16(64, 64), Router(64, 64).bfloat16()),
    "activations": trained(PLAIN, Norm()),
    "a small model": trained(CastLinear(64, 8)),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_casts_are_not_named(case):
    assert found(RIGHT[case]) == []


class Double(nn.Module):
    """Takes values of float64, as numpy makes them, into a model of float32."""

    def __init__(self):
        super().__init__()
        self.first, self.rest = nn.Linear(64, 32).double(), nn.Linear(32, 512)

    def forward(self, x):
        return self.rest(self.first(x.double()).float())


def test_products_in_float64_are_named():
    finding = only(trained(Double()))
    assert (finding.rule, finding.severity, finding.count, finding.module) == ("wide_products", "hint", 1, "0.first")
    assert finding.message == (
        "1 of 2 matrix products and convolutions of the model computes in float64, in which 0.first.weight and "
        "1 more are; most parameters of Sequential are float32"
    )
    # Half of what is read and given in float64: input, weight, bias, result.
    assert finding.effect_bytes == (4 * 64 + 32 * 64 + 32 + 4 * 32) * 8 // 2


def test_a_model_in_float64_is_right():
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).double()
    assert found(lambda: model(X.double()).sum().backward()) == []


class Covariance(nn.Module):
    """Computes what needs the bits in float64."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 8)

    def forward(self, x):
        y = self.fc(x).double()
        return torch.linalg.slogdet(y @ y.T + torch.eye(4, dtype=torch.float64))[1].float()


def test_float64_that_a_line_asks_for_is_right():
    assert found(trained(Covariance())) == []
