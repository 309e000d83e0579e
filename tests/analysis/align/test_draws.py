"""Random numbers that one side draws once for two draws of the other one, and those that no seed of torch's reaches."""

import copy

import pytest
import torch
from torch import nn

import nbkit

X = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(0))


class Dropouts(nn.Module):
    """A linear layer, then `count` dropouts of its result."""

    def __init__(self, count):
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.count = nn.Linear(16, 16), count
        self.first, self.second = nn.Dropout(0.5), nn.Dropout(0.5)

    def forward(self, x):
        h = self.linear(x)
        dropped = self.first(h)
        return dropped + (self.second(h) if self.count == 2 else dropped) * 2


def first_of(left, right):
    return nbkit.opalign(left, right, inputs=(X,)).meta["first_divergence"]


def test_two_dropouts_that_the_exporter_merges_are_two_draws_that_became_one():
    pytest.importorskip("onnxruntime")
    first = first_of(Dropouts(2).train(), "onnx")
    assert first["message"].startswith("two draws became one on the right side: ")
    assert first["message"].endswith("where the left side draws bernoulli_ and bernoulli__1")
    assert (first["left"]["op"], first["right"]["op"]) == ("aten.bernoulli_.float", "Dropout")


def test_one_draw_of_two_is_told_on_either_side_and_the_same_draws_agree():
    for pair, side in (((2, 1), "right"), ((1, 2), "left")):
        assert first_of(*(Dropouts(count).train() for count in pair))["message"].startswith(
            f"two draws became one on the {side} side"
        )
    model = Dropouts(2).train()
    assert first_of(model, copy.deepcopy(model)) is None


def test_what_onnxruntime_draws_never_agrees_and_dropout_in_eval_mode_draws_nothing():
    pytest.importorskip("onnxruntime")
    first = first_of(Dropouts(1).train(), "onnx")
    assert first["message"].startswith("the right side draws random numbers of its own (getitem)")
    assert first_of(Dropouts(2).eval(), "onnx") is None


def test_a_parameter_that_the_exporter_merges_with_an_equal_one_is_said_to_be():
    pytest.importorskip("onnxruntime")
    model = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16), nn.LayerNorm(16)).eval()
    rows = nbkit.opalign(model, "onnx", inputs=(X,)).alignment.set_index("name")["message"]
    said = "merged with 0.{}, which has the same values and is what LayerNormalization of the right reads"
    assert [rows["2.weight"], rows["2.bias"]] == [said.format("weight"), said.format("bias")]
