"""Columns and JSON data as one block."""

import json
import zlib
from typing import Any

import numpy as np

from nbkit.views.panels.pack import codes, decimals, numbers, pack, rows_up, steps


def unpacked(block: bytes) -> tuple[Any, bytes]:
    whole = zlib.decompress(block)
    end = 4 + int.from_bytes(whole[:4], "little")
    return json.loads(whole[4:end]), whole[end:]


def test_columns_stand_in_the_order_in_which_the_header_names_them() -> None:
    header, planes = unpacked(pack({"b": codes(np.array([-1, 0, 299])), "a": {"x": [steps(np.array([5, 5, 4]))]}}))
    assert [header["b"]["way"], header["b"]["width"], header["a"]["x"][0]["way"]] == ["codes", 2, "steps"]
    assert planes == bytes([0, 1, 44, 0, 0, 1, 10, 0, 1])


def test_numbers_that_are_whole_take_few_bytes_and_others_all() -> None:
    assert numbers(np.array([np.nan, -1.0, 2.0])).values.tolist() == [0, 2, 5]
    assert (numbers(np.array([0.5])).way, numbers(np.array([0.5]), 10).way) == ("floats", "numbers")
    assert [numbers(np.array([value])).way for value in (2.0**52, np.inf)] == ["floats", "floats"]


def test_rows_are_told_by_how_far_up_they_are() -> None:
    assert rows_up(np.array([np.nan, 0.0, 1.0, 7.0])).values.tolist() == [0, 3, 3, 8]


def test_steps_are_rounded_and_numbers_where_that_cannot_be_told() -> None:
    made = steps(np.array([1.5, 1.5004, 0.5]), 1000)
    assert (made.way, made.values.tolist(), made.scale) == ("steps", [3000, 0, 1999], 1000)
    assert steps(np.array([], np.int64)).values.tolist() == []
    assert [steps(np.array([value]), 10).way for value in (2.0**51, np.inf, np.nan)] == ["floats", "floats", "numbers"]


def test_floats_are_packed_by_their_digits() -> None:
    assert decimals(np.array([np.nan, np.inf, -np.inf, 0.0]), 3).values.tolist()[:3] == [0, 1, 2]
    made = decimals(np.array([-1.5, 0.025]), 3).values
    assert [(value % (1 << 16), value >> 16) for value in made.tolist()] == [(299 + 3, 3), (500 + 3, 7)]


def test_what_json_cannot_hold_is_null() -> None:
    header, _ = unpacked(pack({"us": [np.inf, float("nan"), 1.5], "name": "</script>\u2028é"}))
    assert header == {"us": [None, None, 1.5], "name": "</script>\u2028é"}
