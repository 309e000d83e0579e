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
        return (x.sin()[:, None] + ROWS).cos()

    def expanding(x: Tensor) -> Tensor:
        return (x.sin()[:, None].expand(-1, 3, -1) - ROWS).cos()

    for models in ((broadcast, expanding), (expanding, broadcast)):
        first = nbkit.opalign(*models, inputs=[X]).meta["first_divergence"]
        assert {first["left"]["op"], first["right"]["op"]} == {"aten.add.Tensor", "aten.sub.Tensor"}
        assert first["kind"] is None and "it reads the same on both sides and gives something else" in first["message"]


def test_a_cast_of_what_one_side_alone_computes_is_not_the_difference():
    def fused(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, (8,)) * 2

    def written(x: Tensor) -> Tensor:
        centered = (x - x.mean(-1, keepdim=True)).bfloat16().float()
        return centered * torch.rsqrt((centered * centered).mean(-1, keepdim=True) + 1.0) * 2

    for models in ((fused, written), (written, fused)):
        first = nbkit.opalign(*models, inputs=[X]).meta["first_divergence"]
        assert {first["left"]["op"], first["right"]["op"]} == {"aten.native_layer_norm.default", "aten.sub.Tensor"}
        assert first["kind"] == "epsilon"  # both ops tell theirs: 1e-05 and 1


def test_a_value_that_one_side_alone_expands_before_it_casts_is_no_value_of_the_other_side():
    def broadcast(x: Tensor) -> Tensor:
        return (x.sin()[:, None] * ROWS).cos()

    def expanding(x: Tensor) -> Tensor:
        return (x.sin()[:, None].expand(-1, 3, -1).bfloat16().float() * ROWS).cos()

    for models in ((broadcast, expanding), (expanding, broadcast)):
        assert nbkit.opalign(*models, inputs=[X]).meta["first_divergence"] is not None
