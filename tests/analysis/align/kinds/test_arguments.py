"""One number that is another one is named by what is done with it; where more differs, nothing is claimed."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import nbkit

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.readers.onnx.run.models import model, node, value  # noqa: E402

X = np.linspace(0.5, 2, 32, dtype=np.float32).reshape(4, 8)


def first_of(left, right):
    return nbkit.opalign(left, right, inputs={"x": X}).meta["first_divergence"]


def rooted(eps, factor=2.0, **weights):
    nodes = [node("Mul", "x x", "a"), node("Add", "a eps", "b"), node("Sqrt", "b", "c"), node("Mul", "c factor", "y")]
    numbers = {"eps": np.float32(eps), "factor": np.float32(factor), **weights}
    return model(nodes, [value("x", [4, 8])], "y", numbers)


@pytest.mark.parametrize(
    ("right", "kind", "message"),
    [
        (rooted(0.3), "epsilon", "The number that is added before the root is 0.25 on the left, 0.3 on the right."),
        (rooted(0.25, 3.0), "scale", "The number by which Mul scales is 2 on the left, 3 on the right."),
    ],
)
def test_a_constant_is_named_by_what_is_done_with_it(right, kind, message):
    first = first_of(rooted(0.25), right)
    assert first["kind"] == kind and first["kind_explained"] < 0.01
    assert kind == "scale" or first["message"].endswith(message)


@pytest.mark.parametrize(("name", "kind"), [("alpha", "scale"), ("axis", "argument")])
def test_an_argument_is_named(name, kind):
    op = {"alpha": "LeakyRelu", "axis": "LogSoftmax"}[name]
    values = {"alpha": (0.1, 0.3), "axis": (0, 1)}[name]
    sides = [model([node(op, "x", "y", **{name: one})], [value("x", [4, 8])], "y") for one in values]
    first = nbkit.opalign(*sides, inputs={"x": X - 1}).meta["first_divergence"]
    assert first["kind"] == kind
    assert f"The argument {name} of {op} is {values[0]} on the left, {values[1]} on the right." in first["message"]


def test_two_arguments_that_differ_are_no_kind_of_their_own():
    sides = [
        model([node("HardSigmoid", "x", "y", alpha=alpha, beta=beta)], [value("x", [4, 8])], "y")
        for alpha, beta in ((0.2, 0.1), (0.3, 0.2))
    ]
    assert first_of(*sides)["kind"] not in ("argument", "scale", "epsilon")


def test_an_argument_of_torch_is_named():
    x = torch.linspace(-2, 2, 32).reshape(4, 8)
    first = nbkit.opalign(
        lambda x: torch.nn.functional.softplus(x * 2, beta=1.0),
        lambda x: torch.nn.functional.softplus(x * 2, beta=1.5),
        inputs=[x],
    ).meta["first_divergence"]
    assert first["kind"] == "argument"
    assert "The argument beta of aten.softplus.default is 1 on the left, 1.5 on the right." in first["message"]


def convolution(pad=None, own=0, weight=(4, 3, 3, 3), mode="constant", value=0.0):
    """Returns a convolution of stride 2 of what is padded before, the same at each call with one weight."""
    weight = torch.randn(weight, generator=torch.Generator().manual_seed(0))

    def run(x):
        if pad is not None:
            x = F.pad(x, pad, mode, value) if mode == "constant" else F.pad(x, pad, mode)
        return F.conv2d(x, weight, stride=2, padding=own).relu()

    return run


def first_of_paddings(left, right):
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    return nbkit.opalign(left, right, inputs=(x,)).meta.get("first_divergence")


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (convolution(own=1), convolution((0, 1, 0, 1)), "are [1, 1], [1, 1] on the left, [0, 1], [0, 1] on the right"),
        (convolution((0, 1, 0, 1)), convolution(own=1), "are [0, 1], [0, 1] on the left, [1, 1], [1, 1] on the right"),
        (convolution((1, 0), (1, 0)), convolution((1, 0, 2, 0)), "[1, 1], [1, 0] on the left, [2, 0], [1, 0] on the"),
    ],
    ids=("in front on the right", "in front on the left", "of the last axis alone"),
)
def test_other_zeros_around_what_a_convolution_reads_are_named(left, right, words):
    first = first_of_paddings(left, right)
    assert first["kind"] == "padding" and words in first["message"]


def test_the_same_zeros_agree_and_others_than_zeros_or_weights_have_another_kind():
    plain = convolution(own=1)
    assert first_of_paddings(plain, convolution((1, 1, 1, 1))) is None
    for other in (convolution((0, 1, 0, 1), mode="reflect"), convolution((0, 1, 0, 1), value=1.0)):
        assert first_of_paddings(plain, other)["kind"] != "padding"
    scaled = convolution((0, 1, 0, 1))
    assert first_of_paddings(plain, lambda x: scaled(2 * x))["kind"] != "padding"
