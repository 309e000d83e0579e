"""Tests quoted strings as Python and C++ print them."""

import pytest

from nbkit.readers.paddle.text.values import string_list, unquoted


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("'a b[]{}=,'", "a b[]{}=,"),
        ("u'x'", "x"),
        ('"it\'s"', "it's"),
        (r"'a\'b\\c\n'", "a'b\\c\n"),
        (r"'\x41\u4e2d\U0001f600'", "A中\U0001f600"),
        (r"'\ud800\q\U99999999'", r"\ud800\q\U99999999"),
    ],
)
def test_a_string_is_read_as_python_prints_it(literal, text):
    assert unquoted(literal) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("] rest", ([], 1)),
        ("'a', \"b,]\",  u'c'] rest", (["a", "b,]", "c"], 18)),
        ("'a'", None),
        ("'a' 'b']", None),
        ("'a, b]", None),
        ("1, 2]", None),
    ],
)
def test_lists_of_strings(text, read):
    assert string_list(text, 0) == read
