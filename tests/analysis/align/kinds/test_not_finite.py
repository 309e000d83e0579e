"""NaN that one op passes on and the other does not is a kind of its own, where what both read has it."""

import pytest
import torch
from torch import nn

import nbkit

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


class Apply(nn.Module):
    def __init__(self, does) -> None:
        super().__init__()
        self.does = does

    def forward(self, x):
        return self.does(x)


def first_of(left, right, *, has_nan=True):
    x = X.clone()
    if has_nan:
        x[1, 3] = float("nan")
    return nbkit.opalign(Apply(left), right if isinstance(right, str) else Apply(right), inputs=[x]).meta[
        "first_divergence"
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x: x.sum(-1), lambda x: x.nansum(-1)),
        (lambda x: x.relu() * 2, lambda x: torch.where(x > 0, x, 0.0) * 2),
        (lambda x: torch.maximum(x, x.new_zeros(8)), lambda x: torch.fmax(x, x.new_zeros(8))),
    ],
)
def test_nan_that_one_side_passes_on_is_handled_otherwise(left, right):
    for sides, texts in (((left, right), ("left", "right")), ((right, left), ("right", "left"))):
        first = first_of(*sides)
        assert first["kind"] == "nan_handling"
        how = f"the {texts[0]} one passes it on, the {texts[1]} one does not."
        assert f"the two differ only where x, which both read, has NaN; {how}" in first["message"]
    assert first_of(left, right, has_nan=False) is None


def test_places_of_a_largest_element_differ_where_a_row_has_nan():
    pytest.importorskip("onnxruntime")
    first = first_of(lambda x: x.argmax(-1), "onnx")
    assert first["kind"] == "nan_handling" and first["left"]["name"] == "argmax"


def test_nan_that_an_op_makes_of_what_has_none_is_not_handled_otherwise():
    first = first_of(lambda x: (x.abs() + 1).sqrt(), lambda x: (-x.abs() - 1).sqrt(), has_nan=False)
    assert first["kind"] != "nan_handling"
    first = first_of(lambda x: x.exp() * 2, lambda x: x.exp() * 3)
    assert first["kind"] != "nan_handling"


@pytest.mark.parametrize("reduce", [lambda x: x.amax(-1), lambda x: x.amin(-1)])
def test_the_axes_that_a_reduction_reads_are_no_first_divergence(reduce):
    pytest.importorskip("onnxruntime")
    first = first_of(reduce, "onnx")
    places = [first[side] for side in ("left", "right") if first[side] is not None]
    assert places and all(place["kind"] == "op" for place in places)


@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: x.amax(-1),
        lambda x: x.reshape(4, 2, 4).amin((1, 2)),
        lambda x: x.reshape(2, 2, 8).amax(1).exp(),
        lambda x: (x / x.amax(-1, keepdim=True)).tanh(),
    ],
)
def test_nan_behind_the_first_place_of_a_row_is_not_seen_by_onnxruntime(reduce):
    pytest.importorskip("onnxruntime")
    first = first_of(reduce, "onnx")
    assert first["kind"] == "nan_handling"
    assert [first[side]["name"] for side in ("left", "right")] == [first["left"]["name"]] * 2
    assert first["left"]["name"] in ("amax", "amin")
    assert "the left one passes it on, the right one does not" in first["message"]


def test_axes_behind_which_nothing_differs_are_no_divergence():
    pytest.importorskip("onnxruntime")
    x = X.clone().reshape(2, 2, 8)
    x[0, 0, 0] = float("nan")
    assert nbkit.opalign(Apply(lambda x: x.log().amax((0, 1, 2))), "onnx", inputs=[x]).meta["first_divergence"] is None
