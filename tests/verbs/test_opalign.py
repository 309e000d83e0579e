"""opalign: what its sides may be, and what it says of those that cannot be used."""

import copy

import pytest
import torch

import nbkit
from nbkit.errors import NbkitError, OptionError


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 4)).eval()


X = torch.linspace(-1, 1, 18).reshape(3, 6)


def test_a_model_agrees_with_its_copy():
    trace = nbkit.opalign(model(), model(), inputs=[X], name="both")
    assert trace.meta["first_divergence"] is None
    assert (trace.meta["verb"], trace.meta["name"], trace.meta["complete"]) == ("opalign", "both", True)
    assert set(trace.frames["alignment"]["mark"]) == {"="}


def test_another_activation_is_where_they_diverge():
    other = copy.deepcopy(model())
    other[1] = torch.nn.GELU(approximate="tanh")
    first = nbkit.opalign(model(), other, inputs=[X]).meta["first_divergence"]
    assert (first["kind"], first["left"]["module"], first["right"]["module"]) == ("activation", "1", "1")


@pytest.mark.parametrize("way", ["export", "compile"])
def test_a_model_agrees_with_what_torch_makes_of_it(way):
    assert nbkit.opalign(model(), way, inputs=[X]).meta["first_divergence"] is None


@pytest.mark.parametrize("way", ["onnx", "onnxruntime"])
def test_a_model_agrees_with_its_exported_one(way):
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)
    trace = nbkit.opalign(model(), way, inputs=[X])
    assert trace.meta["first_divergence"] is None and not trace.meta["error"]


def test_two_recorded_steps_are_aligned():
    with nbkit.optrace(values="stats") as step:
        model()(X)
    trace = nbkit.opalign(step, step)
    assert trace.meta["first_divergence"] is None
    assert trace.meta["left"]["origin"] == "trace"


def test_a_side_that_fails_keeps_the_other():
    trace = nbkit.opalign(model(), torch.nn.Linear(5, 4), inputs=[X])
    assert not trace.meta["complete"]
    assert trace.meta["error"].startswith("the right one ended early: ")
    assert "left" in set(trace.frames["results"]["side"])


@pytest.mark.parametrize("side", [3, None, "absent.onnx"])
def test_two_bad_sides_are_one_sentence(side):
    with pytest.raises(NbkitError) as caught:
        nbkit.opalign(side, side, inputs=[X])
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_an_exported_onnx_model_has_no_backward_pass():
    trace = nbkit.opalign(model(), "onnx", inputs=[X], backward=True)
    assert "an exported ONNX model has no backward pass" in trace.meta["error"]


def test_neither_side_has_a_result():
    with pytest.raises(OptionError, match="a side of opalign is a model"):
        nbkit.opalign(1, 2)
