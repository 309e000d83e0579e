"""The tables of an opcheck trace."""

import torch

import nbkit
from nbkit.views.check_sections import check_sections


def traced(step):
    with nbkit.opcheck() as trace:
        step()
    return trace


def test_findings_come_first_then_what_led_to_the_first():
    sections = check_sections(traced(lambda: (torch.ones(2).exp() / torch.zeros(2)).sin().log()), 5)
    assert [section.title for section in sections[:2]] == [
        "Where values go wrong, first to last",
        "Where the inputs of the first came from",
    ]
    assert [row[:2] for row in sections[0].rows] == [["aten.div.Tensor", "Inf"], ["aten.sin.default", "NaN"]]
    assert [row[0] for row in sections[1].rows] == ["aten.zeros.default", "aten.exp.default", "aten.ones.default"]


def test_a_healthy_trace_says_how_much_was_looked_at():
    sections = check_sections(traced(lambda: torch.ones(2).exp()), 5)
    assert sections[0].rows == [["No NaN, Inf or underflow began in the 2 results that were looked at."]]


def test_more_findings_than_rows_are_counted():
    sections = check_sections(traced(lambda: [torch.zeros(2).log() for _ in range(7)]), 3)
    assert [row[0] for row in sections[0].rows] == ["aten.log.default"] * 3 + ["and 4 more"]
