"""Tests values of attributes."""

import pytest

from nbkit.readers.paddle.records import BlockReference, VariableReference
from nbkit.readers.paddle.text.values import value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-1", -1),
        ("13L", 13),
        ("9.999999974752427e-07", 9.999999974752427e-07),
        ("-3.4028234663852886e+38", -3.4028234663852886e38),
        ("1e-3", 0.001),
        ("True", True),
        ("[]", []),
        ("[-1, 2]", [-1, 2]),
        ("[1.5, True, [dp,mp]]", [1.5, True, ["dp", "mp"]]),
        ("['a, b]', u'c']", ["a, b]", "c"]),
        ("block[3]", BlockReference((3,))),
        ("blocks[1, 2]", BlockReference((1, 2), is_list=True)),
        ("Var['a[0], b']", VariableReference(("a[0], b",))),
        ("Vars['a', 'b']", VariableReference(("a", "b"), is_list=True)),
    ],
)
def test_values_have_their_type(text, expected):
    assert value(text) == expected
    assert type(value(text)) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "float32",
        "inf",
        "nan",
        "1e999",
        "1.2.3",
        "-",
        "[1, 2",
        "[1]]",
        "[" * 50,
        "Var['a",
        "block[x]",
        "9" * 5000,
    ],
)
def test_all_else_is_text(text):
    assert value(text) == text
