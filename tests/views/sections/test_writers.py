"""Sections as text, HTML and widget."""

import io
import sys

import pytest

from nbkit.views.sections.section import Column, Section, columns
from nbkit.views.sections.writers import NARROWEST, USUAL, WIDEST, text_width, to_html, to_text, without_middle

KINDS = (*columns("op, module"), Column("time", "time"), Column("what happened", "sentence"))
MODULE = "model.transformer.layers.11.attention.query_key_value.projection"
ROW = ["aten.mm.default", MODULE, 1500.0, "3 of 12 elements are NaN, the first at [0, 3]; its inputs hold none of them"]


def test_every_line_fits_and_no_sentence_is_cut() -> None:
    for width in (80, 100, 120):
        lines = to_text([Section("Findings", KINDS, [ROW])], width)
        assert max(map(len, lines)) <= width
        assert " ".join(" ".join(lines).split()).endswith(ROW[3])


def test_names_lose_their_middle() -> None:
    assert without_middle("model.layers.0.attention", 13) == "model.…ention"
    assert without_middle("short", 5) == "short"
    lines = to_text([Section("Findings", KINDS, [ROW])], 80)
    assert lines[2].split()[1].startswith("model.trans") and lines[2].split()[1].endswith("projection")


def test_what_fits_stands_in_one_line_with_numbers_to_the_right() -> None:
    section = Section(
        "Slowest ops", (Column("op"), Column("calls", "count")), [["a", 12345], ["b", None]], "and 3 more"
    )
    assert to_text([section], 80) == [
        "",
        f"{'slowest ops':<32}     calls",
        f"{'a':<32}    12,345",
        f"{'b':<32}         —",
        "and 3 more",
    ]


def test_names_alone_are_as_wide_as_they_are() -> None:
    assert to_text([Section("Models", (Column("model"),), [["GPT"], ["LLaMA 3"]])], 80) == [
        *("", "models", "GPT", "LLaMA 3"),
    ]


def test_a_terminal_gives_the_width_within_reason_and_a_file_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", "110")
    assert text_width() == USUAL
    monkeypatch.setattr(stream, "isatty", lambda: True)
    assert text_width() == 110
    widths = []
    for columns_ in ("7", "700"):
        monkeypatch.setenv("COLUMNS", columns_)
        widths.append(text_width())
    assert widths == [NARROWEST, WIDEST]


def test_html_has_a_dash_for_what_is_missing_and_colours_for_phases() -> None:
    html = to_html([Section("T<", (Column("phase", "phase"), Column("n", "count")), [["forward", None]], "and 1 more")])
    assert "<caption>T&lt;</caption>" in html and '<i style="background:#3b82f6"></i>forward' in html
    assert '<td class="nbkit-number"><span class="nbkit-null">—</span></td>' in html
    assert '<td colspan="2">and 1 more</td>' in html
