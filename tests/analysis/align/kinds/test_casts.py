"""A cast to fewer bits and back that one side alone has is named; a view that it alone has is no cast."""

import pytest
import torch
from torch import Tensor

import nbkit

X = torch.linspace(-2, 2, 32).reshape(4, 8)
ROWS = torch.linspace(0.5, 1.5, 24).reshape(3, 8)


def plain(x: Tensor) -> Tensor:
    return (x.sin() * 2).cos()


def casting(x: Tensor) -> Tensor:
    return (x.sin().bfloat16().float() * 2).cos()


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_side_that_casts_is_named(side):
    models = (casting, plain) if side == "left" else (plain, casting)
    first = nbkit.opalign(*models, inputs=[X]).meta["first_divergence"]
    assert first["kind"] == "accumulation_dtype" and first["kind_explained"] < 0.01
    assert f"The {side} one alone casts sin to bfloat16 and back; without that cast they agree." in first["message"]


def test_what_one_side_alone_expands_is_no_cast():
    def broadcast(x: Tensor) -> Tensor:
        return (x.sin()[:, None] * ROWS).cos()

    def expanding(x: Tensor) -> Tensor:
        return (x.sin()[:, None].expand(-1, 3, -1) * (ROWS * 1.5)).cos()

    first = nbkit.opalign(broadcast, expanding, inputs=[X]).meta["first_divergence"]
    assert first["kind"] == "scale", first
