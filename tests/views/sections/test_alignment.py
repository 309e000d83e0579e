"""The tables of two executions side by side."""

import pandas as pd

from nbkit.schema import TEXT
from nbkit.trace.trace import Trace
from nbkit.views.sections.alignment import alignment_sections, modules_section, worst_section
from nbkit.views.sections.section import Section
from tests.support.fakes import small_trace
from tests.views.alignment.makers import aligned_trace


def sections_of(trace: Trace, count: int = 20) -> dict[str, Section]:
    return {section.title: section for section in alignment_sections(trace, count)}


def test_what_adds_most_stands_first() -> None:
    section = worst_section(aligned_trace().alignment, 3)
    assert [row[2] for row in section.rows] == [20, 30, 21]
    assert section.caption == "and 9 more"


def test_modules_that_differ_come_before_those_that_agree() -> None:
    section = modules_section(aligned_trace().alignment, 20)
    assert [column.label for column in section.columns] == ["left module", "=", "~", "-", "+", "worst error"]
    assert section.rows[:2] == [
        ["model.layers.0.mlp", 0, 3, 0, 0, 0.02],
        ["model.layers.0.self_attn", 8, 4, 1, 0, 0.0121],
    ]
    assert section.rows[-1][0] == "model.embed_tokens"


def test_modules_of_both_sides_stand_side_by_side() -> None:
    rows = aligned_trace().alignment
    other = pd.Series("decoder.layer", index=rows.index, dtype=TEXT).where(rows["right_id"].notna())
    section = modules_section(rows.assign(right_module=other), 20)
    assert section.rows[1][:2] == ["model.layers.0.self_attn", "decoder.layer"]
    assert [None, "decoder.layer"] in [row[:2] for row in section.rows]


def test_what_only_one_side_has_is_counted_by_op() -> None:
    sections = sections_of(aligned_trace())
    assert sections["On the left only"].rows == [["aten.mul.Scalar", 1, 1, "mul_scale"]]
    assert [row[:3] for row in sections["On the right only"].rows] == [["Unsqueeze", 3, 0], ["constant", 1, 0]]


def test_marks_are_counted_with_what_shows_that_they_are_the_same() -> None:
    rows = sections_of(aligned_trace())["Results by mark"].rows
    assert [row[:2] for row in rows] == [["= agree", 18], ["~ differ", 12], ["- left only", 1], ["+ right only", 4]]
    assert rows[0][2] == "relation: same 13, permute 5; evidence: name 11, values 6, structure 1"


def test_tables_without_rows_are_left_out() -> None:
    assert "Worst pairs" not in sections_of(aligned_trace(diverge=False))
    assert alignment_sections(small_trace(), 5) == []
