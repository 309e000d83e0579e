"""Tests which given input each input of a model with other names gets, and which orders there are."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto  # noqa: E402

from nbkit.errors import OptionError  # noqa: E402
from nbkit.readers.onnx.run.matching import Matched, declared_inputs, matched  # noqa: E402
from tests.readers.onnx.run.models import floats, model, node, value  # noqa: E402

X, Y, IDS = floats(4, 6), floats(4, 6, seed=1), np.arange(4)


def declared(*inputs):
    return declared_inputs(model([node("Identity", inputs[0].name, "out")], inputs, "out"))[0]


def test_dtype_and_shape_tell_inputs_apart_whatever_their_order():
    found = matched(declared(value("i", ["n"], TensorProto.INT64), value("a", ["n", 6])), {"x": X, "ids": IDS})
    assert (found.pairs, found.equal) == ({"i": "ids", "a": "x"}, ())


def test_those_of_one_form_are_taken_in_order_and_named_as_such():
    found = matched(declared(value("a", [4, 6]), value("b", ["n", 6]), value("i", [4], TensorProto.INT64)),
                    {"x": X, "ids": IDS, "y": Y})  # fmt: skip
    assert (found.pairs, found.equal) == ({"a": "x", "b": "y", "i": "ids"}, (("a", "b"),))
    assert found.text() == "x to a, y to b, ids to i"
    assert [order.pairs for order in found.orders()] == [{"a": "y", "b": "x", "i": "ids"}]


def test_a_name_that_fits_goes_before_the_order():
    found = matched(declared(value("y", [4, 6]), value("b", [4, 6])), {"x": X, "y": Y})
    assert (found.pairs, found.equal) == ({"y": "y", "b": "x"}, ())


def test_a_name_that_does_not_fit_is_no_reason():
    found = matched(declared(value("x", [4], TensorProto.INT64), value("b", [4, 6])), {"x": X, "ids": IDS})
    assert found.pairs == {"x": "ids", "b": "x"}


def test_an_input_of_any_size_gives_way_to_one_that_needs_its_place():
    found = matched(declared(value("any", ["n", "m"]), value("fixed", [4, 6])), {"x": X, "wide": floats(4, 9)})
    assert (found.pairs, found.equal) == ({"any": "wide", "fixed": "x"}, ())


@pytest.mark.parametrize("given", [{"x": X}, {"x": X, "y": Y[:2]}, {"x": X, "y": Y, "z": X}, {"x": X, "ids": IDS}])
def test_what_cannot_be_told_is_refused_with_both_lists(given):
    message = r"the model has 'a' float32 \(4, 6\), 'b' float32 \(4, 6\); given are 'x' float32 .* Give right_inputs"
    with pytest.raises(OptionError, match=message):
        matched(declared(value("a", [4, 6]), value("b", [4, 6])), given)


def test_so_many_orders_are_tried_and_no_more():
    names = tuple("abcdefgh")
    orders = [*Matched({name: name.upper() for name in names}, (names,)).orders()]
    assert len({tuple(order.pairs.values()) for order in orders}) == 24
    assert all(sorted(order.pairs.values()) == list("ABCDEFGH") for order in orders)


def test_an_initializer_that_is_an_input_too_need_not_be_given():
    held = model([node("Add", "x w", "out")], [value("x", [2]), value("w", [2])], "out", {"w": floats(2)})
    required, known = declared_inputs(held)
    assert (list(required), known) == (["x"], {"x", "w"})
