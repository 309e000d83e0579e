"""opalign of ONNX models whose inputs have other names: what each gets, and what is said of it."""

import numpy as np
import pytest
import torch

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import nbkit
from nbkit.errors import OptionError
from tests.readers.onnx.run.models import floats, model, node, value

X, Y = floats(4, 6, seed=1), floats(4, 6, seed=2)
GIVEN = {"x": X, "y": Y}


def difference(first: str, second: str, *, listed: str = "", op: str = "Tanh"):
    """tanh(first @ w) - second @ v, with inputs in the order of `listed`."""
    nodes = [node("MatMul", f"{first} w", "p"), node(op, "p", "t"), node("MatMul", f"{second} v", "q")]
    inputs = [value(name, ["n", 6]) for name in (listed or f"{first} {second}").split()]
    weights = {"w": floats(6, 5), "v": floats(6, 5, seed=7)}
    return model([*nodes, node("Sub", "t q", "out")], inputs, "out", weights)


LEFT = difference("x", "y")


@pytest.mark.parametrize("inputs", [GIVEN, {"y": Y, "x": X}, [X, Y]])
def test_inputs_of_one_form_are_given_in_the_order_of_the_models(inputs):
    trace = nbkit.opalign(LEFT, difference("a", "b"), inputs=inputs)
    assert trace.meta["first_divergence"] is None and not trace.meta["doubts"]
    assert trace.meta["notes"][0].startswith("The right inputs were matched by name, dtype and shape: x to a, y to b.")


def test_an_order_that_agrees_is_found_and_said():
    trace = nbkit.opalign(LEFT, difference("a", "b", listed="b a"), inputs=GIVEN)
    assert trace.meta["first_divergence"] is None
    (doubt,) = trace.meta["doubts"]
    assert doubt.startswith("The right inputs are in another order: y to b, x to a.")
    assert "are in another order" in trace.summary().split("\n\n")[0].replace("\n", " ")


def test_a_divergence_says_which_input_went_where():
    trace = nbkit.opalign(LEFT, difference("a", "b", op="Sigmoid"), inputs=GIVEN)
    assert trace.meta["first_divergence"]
    assert "x to a, y to b. Only their order told apart x, y" in trace.meta["doubts"][-1]
    assert "Of 1 other order tried none agrees" in trace.meta["doubts"][-1]


def test_arrays_under_the_names_of_both_are_given_by_name():
    given = {**GIVEN, "a": Y, "b": X}
    trace = nbkit.opalign(LEFT, difference("b", "a"), inputs=given)
    assert trace.meta["first_divergence"] is None and not trace.meta["notes"] and not trace.meta["doubts"]
    assert nbkit.opalign(LEFT, difference("a", "b"), inputs=given).meta["first_divergence"]


def test_a_name_of_neither_is_refused_by_the_left_side():
    with pytest.raises(OptionError, match="the left side cannot be used: The inputs do not pair by name"):
        nbkit.opalign(LEFT, difference("a", "b"), inputs={**GIVEN, "other": X})


def test_what_does_not_fit_is_refused_before_anything_runs():
    short = model([node("Identity", "a", "out")], [value("a", [4, 6])], "out")
    with pytest.raises(OptionError, match="the right side cannot be used: its inputs cannot be told"):
        nbkit.opalign(LEFT, short, inputs=GIVEN)


def test_inputs_of_a_module_are_named_by_its_arguments():
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ torch.from_numpy(floats(6, 5))) - y @ torch.from_numpy(floats(6, 5, seed=7))

    tensors = {name: torch.from_numpy(array) for name, array in GIVEN.items()}
    for inputs in (tensors, [*tensors.values()]):
        trace = nbkit.opalign(forward, difference("a", "b"), inputs=inputs)
        assert trace.meta["first_divergence"] is None and "x to a, y to b" in trace.meta["notes"][0]
    swapped = nbkit.opalign(forward, difference("x", "y", listed="y x"), inputs=[*tensors.values()])
    assert swapped.meta["first_divergence"] is None and "y to y, x to x" in swapped.meta["notes"][0]


def test_right_inputs_are_taken_as_they_are():
    trace = nbkit.opalign(LEFT, difference("a", "b"), inputs=GIVEN, right_inputs={"a": Y, "b": X})
    assert trace.meta["first_divergence"] and not trace.meta["doubts"]
    assert np.array_equal(X, GIVEN["x"])
