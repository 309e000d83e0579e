"""Tests attributes, told apart by the order of their names where values are text without quotes."""

import pytest

from nbkit.readers.paddle.text.attributes import parse

ROLE = "op_device = , op_role = 0"
READ_ROLE = {"op_device": "", "op_role": 0}


def test_each_attribute_has_its_value():
    text = "axis = -1, op_device = , op_namescope = /, op_role_var = ['w', 'w@GRAD'], value = 1.0"
    read = {"axis": -1, "op_device": "", "op_namescope": "/", "op_role_var": ["w", "w@GRAD"], "value": 1.0}
    assert parse(text) == (read, True)


@pytest.mark.parametrize(
    "message",
    [
        "x, c = {d}",
        "loss [0], axis = 3, (now",
        "it's, message = again",
        "say 'a, b' = \"c\", zoo = 1",
        "[1, 2, op_role = ",
        "step = {, dist_attr = {1}, of",
    ],
)
def test_text_without_quotes_may_look_like_attributes(message):
    read = {"first_n": -1, "message": message, **READ_ROLE}
    assert parse(f"first_n = -1, message = {message}, {ROLE}") == (read, True)


def test_names_in_lists_begin_no_attribute():
    text = "a = 1, op_callstack = ['  z = f(x, op_role = 3)', 'q, y = 2'], op_role = 0"
    read = {"a": 1, "op_callstack": ["  z = f(x, op_role = 3)", "q, y = 2"], "op_role": 0}
    assert parse(text) == (read, True)


def test_dist_attr_comes_last_whatever_its_name():
    attributes, is_whole = parse(
        f"{ROLE}, dist_attr = {{op type: f, tmp_1's dims_mapping (input): [-1, 0], chunk_id: 0 }}"
    )
    assert is_whole
    assert list(attributes) == ["op_device", "op_role", "dist_attr"]
    assert attributes["dist_attr"]["op type"] == "f"


def test_attributes_of_the_first_releases_are_not_sorted():
    assert parse("y = 2, x = 1", is_sorted=False) == ({"y": 2, "x": 1}, True)


@pytest.mark.parametrize("text", ["", " ", ", "])
def test_there_may_be_none(text):
    assert parse(text) == ({}, True)


@pytest.mark.parametrize("text", ["\x00\x01", "[1, 2]"])
def test_what_is_no_attribute_is_said(text):
    assert parse(text) == ({}, False)


def test_a_name_in_dist_attr_begins_no_attribute():
    for end, is_complete in (("}", True), ("", False)):
        attributes, is_whole = parse(f"op_role = 0, dist_attr = {{op type: f, z = 1's dims_mapping (input): [0]{end}")
        assert (list(attributes), is_whole) == (["op_role", "dist_attr"], is_complete)


def test_a_cut_dist_attr_is_said():
    attributes, is_whole = parse("op_role = 0, dist_attr = {op type: f, process_mesh (annotated): {shape: [2")
    assert not is_whole
    assert attributes["dist_attr"]["op type"] == "f"
