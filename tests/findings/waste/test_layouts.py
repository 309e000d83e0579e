"""Activations of channels_last models: the line that brings them back to NCHW, and right models."""

import json

import pytest
import torch
from torch import nn

from tests.findings.waste.steps import found, only

X = torch.randn(2, 8, 6, 6)


class Shuffle(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        x = x.contiguous()
        return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)


class Tokens(nn.Module):
    """Mixes positions as attention does: flatten and transpose take channels_last as it is."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        y = self.mix(x.flatten(2).transpose(1, 2)).softmax(-1)
        return x + y.transpose(1, 2).reshape(x.shape)


def conv():
    return nn.Conv2d(8, 8, 3, padding=1)


def net(*layers, is_last=True):
    model = nn.Sequential(*layers)
    return model.to(memory_format=torch.channels_last) if is_last else model


def trained(model, x=X):
    return lambda: model(x).square().mean().backward()


def last(x=X):
    return x.to(memory_format=torch.channels_last)


def test_the_line_that_brings_nchw_back_is_named():
    model = net(*[layer for _ in range(4) for layer in (conv(), nn.ReLU(), Shuffle())])
    finding = only(trained(model, last()))
    assert (finding.rule, finding.severity, finding.count, finding.module) == ("layout_conversions", "hint", 3, "2")
    assert finding.source_text == "x = x.contiguous()"
    assert finding.message == (
        "This line brings activations of a channels_last model back to NCHW, 3 times in all, and the "
        "convolutions behind it convert them to channels_last again, 3 times"
    )
    assert finding.effect_bytes == 3 * 2 * X.numel() * 4
    assert len(json.loads(finding.evidence)["convolutions"]) == 3


def test_an_op_that_gives_nchw_is_named_where_nobody_asks_for_it():
    class Rolled(nn.Module):
        def forward(self, x):
            return x.flatten(1).view(x.shape)

    finding = only(trained(net(*[layer for _ in range(3) for layer in (conv(), Rolled())]), last()))
    assert (finding.rule, finding.count) == ("layout_conversions", 2)
    assert "flatten" in finding.source_text


RIGHT = {
    "a model in NCHW": (net(conv(), Shuffle(), conv(), Shuffle(), conv(), is_last=False), X),
    "all in channels_last": (net(conv(), nn.ReLU(), nn.BatchNorm2d(8), conv(), nn.MaxPool2d(2), conv()), last()),
    "a batch in NCHW": (net(conv(), nn.ReLU(), conv()), X),
    "one conversion": (net(conv(), Shuffle(), conv()), last()),
    "a head of rows": (net(conv(), nn.ReLU(), conv(), nn.Flatten(), nn.Linear(288, 3)), last()),
    "tokens": (net(conv(), Tokens(), conv(), Tokens(), conv(), Tokens(), conv()), last()),
    "one pixel": (net(conv(), Shuffle(), conv(), Shuffle(), conv()), last(X[..., :1, :1])),
    "no image": (net(conv(), Shuffle(), conv(), Shuffle(), conv()), last(X[:0])),
    "lines": (nn.Sequential(nn.Conv1d(8, 8, 3), nn.ReLU(), nn.Conv1d(8, 8, 3)), X[..., 0]),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_layouts_are_not_named(case):
    assert found(trained(*RIGHT[case])) == []
