"""Tests protobuf messages in text form, line by line."""

import pytest

from nbkit.readers.oneflow.dtypes import sbp_names, shape_of
from nbkit.readers.text_proto import TextProto, message, number, plain, text, texts


def read(*lines: str) -> TextProto:
    proto = TextProto()
    assert [proto.add(line) for line in lines] == [True] * len(lines)
    return proto


def test_fields_repeat_and_nest():
    proto = read('name: "a"', "conf {", "dim: 1", "dim: 2", "inner {", "}", "}")
    assert proto.fields == {"name": ['"a"'], "conf": [{"dim": ["1", "2"], "inner": [{}]}]}
    assert proto.is_closed
    assert texts(message(proto.fields, "conf"), "dim") == ["1", "2"]
    assert plain(proto.fields) == {"name": "a", "conf": {"dim": [1, 2], "inner": {}}}


def test_open_message():
    assert not read("conf {", "dim: 1").is_closed


@pytest.mark.parametrize(
    "line", ["", "}", "two words: 1", '"a": 1', 'name: "open', 'name: "', "{", " {", "ä: 1", "x", "[x {"]
)
def test_what_is_no_field_changes_nothing(line):
    proto = read('name: "a"')
    assert not proto.add(line)
    assert (proto.fields, proto.is_closed) == ({"name": ['"a"']}, True)


def test_deep_nesting_has_an_end():
    proto = TextProto()
    assert sum(proto.add("x {") for _ in range(1000)) == 64


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (r'"it\'s \"x\"\n"', 'it\'s "x"\n'),
        (r'"\346\226\207"', "文"),
        (r'"\x41\\n"', "A\\n"),
        ('"文\\t"', "文\t"),
        (r'"\377"', "\ufffd"),
        ("kFloat", "kFloat"),
    ],
)
def test_texts_lose_quotes_and_escapes(value, found):
    assert text({"loc": [value]}, "loc") == found


@pytest.mark.parametrize(
    ("value", "found"),
    [("-3", -3), ("1e-05", 1e-05), ("inf", "inf"), ("nan", "nan"), ("kFloat", "kFloat"), ("9" * 50, 1e50)],
)
def test_numbers(value, found):
    assert number(value) == found


def test_shapes_and_distributions():
    scalar = read("shape {", "}").fields
    assert (shape_of(scalar), shape_of({}), shape_of(read("shape {", "dim: x", "}").fields)) == ((), None, None)
    assert sbp_names(read('nd_sbp: "B"', 'nd_sbp: "S(1)"').fields) == ["B", "S(1)"]
    partial = ("sbp_parallel {", "partial_sum_parallel {", "}", "}")
    nested = read("nd_sbp {", *partial, "sbp_parallel {", "split_parallel {")
    assert sbp_names(nested.fields) == ["P", "S(0)"]
