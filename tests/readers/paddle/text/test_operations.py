"""Tests operations of readable programs."""

import pytest

from nbkit.readers.paddle.text.operations import parse


def test_slots_and_attributes():
    operation, before = parse(
        "  {Out=['a'], XShape=['b', 'c']} = op_v2(inputs={X=[], Y@GRAD=['d']}, axis = 1, op_device = )"
    )
    assert before == "  "
    assert operation.type == "op_v2"
    assert operation.inputs == [("X", []), ("Y@GRAD", ["d"])]
    assert operation.outputs == [("Out", ["a"]), ("XShape", ["b", "c"])]
    assert (operation.attributes, operation.damage) == ({"axis": 1, "op_device": ""}, None)


@pytest.mark.parametrize(
    ("text", "outputs", "inputs"),
    [
        ("send(inputs={X=['a']}, peer = 1)", [], [("X", ["a"])]),
        ("{} = f(inputs={X=['a']}, peer = 1)", [], [("X", ["a"])]),
        ("{Out=['a']} = f(inputs={}, peer = 1)", [("Out", ["a"])], []),
        ("a, b = f(inputs=[x, y], peer = 1)", [(None, ["a", "b"])], [(None, ["x", "y"])]),
        ("a = f(inputs=[u'x'], peer = 1)", [(None, ["a"])], [(None, ["x"])]),
        ("Out=[u'a'] = f(inputs=X=[u'x'], Y=[], peer = 1)", [("Out", ["a"])], [("X", ["x"]), ("Y", [])]),
    ],
)
def test_spellings_of_slots(text, outputs, inputs):
    operation, _ = parse(text)
    assert (operation.outputs, operation.inputs) == (outputs, inputs)
    assert (operation.attributes, operation.damage) == ({"peer": 1}, None)


@pytest.mark.parametrize("text", ["barrier(inputs={}, )", "barrier(inputs={})"])
def test_an_operation_may_have_nothing(text):
    operation, _ = parse(text)
    assert (operation.outputs, operation.inputs, operation.attributes, operation.damage) == ([], [], {}, None)


@pytest.mark.parametrize("name", ["a b", "x[0]{1}(2)=3,4", "it\\'s", "(inputs={X=[]}", "} = mul(inputs={", "', \"'"])
def test_names_may_hold_anything(name):
    quoted = f"'{name}'" if name != "', \"'" else '"\', \\""'
    operation, _ = parse(f"{{Out=[{quoted}]}} = relu(inputs={{X=[{quoted}], Y=['y']}}, op_role = 0)")
    expected = name.replace("\\'", "'") if name != "', \"'" else "', \""
    assert operation.outputs == [("Out", [expected])]
    assert operation.inputs == [("X", [expected]), ("Y", ["y"])]
    assert (operation.type, operation.damage) == ("relu", None)


def test_an_operation_in_the_text_of_an_attribute_is_text():
    operation, _ = parse("y = f(inputs=[x], code = {Out=['b']} = add(inputs={X=['c']}, axis = 1))")
    assert (operation.type, operation.outputs, operation.inputs) == ("f", [(None, ["y"])], [(None, ["x"])])


def test_what_stands_before_is_given_back():
    assert parse("1122{{Out=['a']} = f(inputs={}, )")[1] == "1122{"


@pytest.mark.parametrize(
    ("text", "damage"),
    [
        ("{Out=['a']} = f(inputs={X=['b']}, axis = 1, op_ro", "its record is cut"),
        ("{Out=['a']} = f(inputs={X=['b']}", "its record is cut"),
        ("{Out=['a']} = f(inputs={X=['b", "its inputs cannot be read"),
        ("{Out=['a']} = f(inputs={X=\x00['b']}, axis = 1)", "its inputs cannot be read"),
        ("a = f(inputs=[x, (y], peer = 1)", "its inputs cannot be read"),
        ("{Out=[\x00'a']} = f(inputs={X=['b']}, axis = 1)", "its outputs cannot be read"),
        ("{Out=['a']} = f(inputs={X=['b']}\x00, axis = 1)", "its attributes cannot be read"),
        ("{Out=['a']} = f(inputs={X=['b']}, \x00\x01)", "its attributes cannot be read"),
    ],
)
def test_damage_is_said_and_the_type_kept(text, damage):
    operation, _ = parse(text)
    assert (operation.type, operation.damage) == ("f", damage)


@pytest.mark.parametrize("text", ["(inputs={X=['b']}, )", "{Out=['a']} = (inputs={}, )"])
def test_without_a_type_it_is_none(text):
    assert parse(text) is None
