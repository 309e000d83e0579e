"""The alignment as text, a line per pair."""

import pandas as pd
import pytest

from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.views.alignment.text import side_by_side_text
from tests.views.alignment.makers import LONG, aligned_trace


def lines_of(trace: Trace, size: int = 60) -> list[str]:
    return side_by_side_text(trace, size).split("\n")


def test_a_line_has_number_mark_both_sides_and_their_errors() -> None:
    line = lines_of(aligned_trace(), 120)[20]
    number, mark, left, right, errors = line.split(" ", 2)[:2] + [part.split() for part in line.split(" | ")[1:]]
    assert (number, mark) == ("020", "~")
    assert left == ["RESULT", "float32", "4:2x8x64x64", "_softmax", "softmax"]  # without aten and its usual overload
    assert right == ["RESULT", "float32", "4:2x8x64x64", "Softmax", "/Softmax_output_0"]
    assert errors == ["a=0.0363", "r=0.484"]


def test_a_side_without_the_result_is_blank() -> None:
    lines = lines_of(aligned_trace())
    assert lines[18].startswith("018 - | RESULT")
    assert lines[18].endswith("|")
    assert lines[6].split(" | ")[1].strip() == ""


def test_the_columns_stand_below_each_other() -> None:
    lines = lines_of(aligned_trace())
    assert {line.index("|", 7) for line in lines} == {lines[0].index("|", 7)}


def test_long_names_lose_their_middle_and_keep_their_ends() -> None:
    left, right = lines_of(aligned_trace(), 60)[17].split(" | ")[1:3]
    assert len(right) == 60 and max(map(len, lines_of(aligned_trace(), 60)[0].split(" | ")[1:])) <= 60
    assert len(left) <= 60
    name = right.split()[-1]
    assert len(name) >= 20
    assert (name[:4], name[-4:]) == (LONG[:4], LONG[-4:])


def test_a_wide_side_shows_every_name_whole() -> None:
    assert LONG in lines_of(aligned_trace(), 400)[17]


def test_what_the_model_returns_is_an_output() -> None:
    assert lines_of(aligned_trace())[29].startswith("029 ~ | OUTPUT ")


def test_without_elementwise_errors_that_of_the_whole_result_stands() -> None:
    trace = aligned_trace()
    rows = trace.alignment.assign(max_abs_error=float("nan"), max_rel_error=float("nan"))
    assert lines_of(Trace({**trace.frames, "alignment": rows}, trace.meta))[20].endswith(" | e=0.0121")


def test_unknown_sizes_and_scalars_can_be_read() -> None:
    trace = aligned_trace()
    shapes = pd.Series(trace.alignment["shape"]).replace({"[2, 64]": "[]", "[64, 64]": "[null, 64]"})
    lines = lines_of(Trace({**trace.frames, "alignment": trace.alignment.assign(shape=shapes)}, trace.meta))
    assert (lines[0].split()[5], lines[1].split()[5]) == ("0:", "2:?x64")


def test_nothing_says_so() -> None:
    trace = aligned_trace()
    assert (
        side_by_side_text(Trace({**trace.frames, "alignment": trace.alignment.iloc[:0]}, trace.meta)) == "No results."
    )


def test_a_trace_without_two_sides_is_refused() -> None:
    with pytest.raises(OptionError, match="a trace of optrace, which has no two sides; give one that nbkit.opalign"):
        side_by_side_text(Trace({}, {"verb": "optrace"}))
