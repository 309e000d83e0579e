"""Tests times and frames as they stand in a Chrome trace."""

import pytest

from nbkit.readers.chrome.columns import nanoseconds, whole
from nbkit.readers.chrome.names import is_user_path, user_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4384683269947.116", 4384683269947116),
        ("8384683269947.001", 8384683269947001),
        ("5.5", 5500),
        ("-1.25", -1250),
        ("0.0004", 0),
        ("1e3", 1_000_000),
        (7, 7000),
    ],
)
def test_nanoseconds_are_exact(text, expected):
    assert nanoseconds(text) == expected


@pytest.mark.parametrize("value", ["noon", None, [], float("nan"), "inf"])
def test_what_is_no_time(value):
    with pytest.raises((ValueError, OverflowError)):
        nanoseconds(value)


@pytest.mark.parametrize(
    ("value", "expected"), [(3, 3), ("4", 4), ("128.0", 128), ("x", None), (None, None), ("inf", None)]
)
def test_whole(value, expected):
    assert whole(value) == expected


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ("train.py(12): <module>", "train.py:12"),
        ("models/net.py(5): forward", "models/net.py:5"),
        ("/data/lib.py(3): f", "/data/lib.py:3"),
        ("site-packages/transformers/models/llama.py(9): forward", "site-packages/transformers/models/llama.py:9"),
        ("torch/nn/modules/module.py(1776): _call_impl", None),
        ("/usr/lib/python3.11/site-packages/torch/_tensor.py(3): f", None),
        ("/usr/lib/python3.11/threading.py(1045): _bootstrap", None),
        ("contextlib.py(78): inner", None),
        ("<built-in method linear>", None),
        ("<string>(2): __init__", None),
    ],
)
def test_only_lines_of_the_user_count(frame, line):
    assert user_line(frame) == line


@pytest.mark.parametrize(
    ("path", "is_users"),
    [
        ("/data/me/train.py", True),
        ("/usr/lib/python3.11/site-packages/transformers/trainer.py", True),
        ("/usr/lib/python3.11/site-packages/nbkit/capture/distributed/api_calls.py", False),
        ("/data/me/src/nbkit/capture/distributed/api_calls.py", False),
        ("/data/me/nbkit/train.py", True),
        ("/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", False),
    ],
)
def test_a_line_of_nbkit_is_no_users_wherever_it_is_installed(path, is_users):
    assert is_user_path(path) is is_users
