"""The tables of an opcheck trace."""

import torch

import nbkit
from nbkit.views.sections.check import check_sections
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.view import view_of

OTHERS = ["module", "source", "line", "what happened"]


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
    assert [row[:2] for row in sections[0].texts()] == [["aten.div.Tensor", "Inf"], ["aten.sin.default", "NaN"]]
    assert [row[0] for row in sections[1].texts()] == ["aten.zeros.default", "aten.exp.default", "aten.ones.default"]


def test_a_healthy_trace_says_how_much_was_looked_at():
    sections = check_sections(traced(lambda: torch.ones(2).exp()), 5)
    assert sections[0].texts() == [["Nothing wrong found: in 2 results no NaN, Inf or underflow began."]]


def test_a_healthy_trace_tells_of_masks_and_an_empty_one_of_nothing():
    [[[masked]]] = [section.texts() for section in check_sections(traced(lambda: torch.full((2,), -torch.inf)), 5)]
    assert masked.endswith(
        "began. 1 of them contains NaN or Inf constants that are expected, such as the -Inf of a mask."
    )
    assert check_sections(traced(lambda: None), 5)[0].texts() == [["Not checked: no result was examined."]]


def test_a_healthy_trace_tells_of_what_was_thrown_away():
    [[[text]]] = [section.texts() for section in check_sections(traced(lambda: torch.zeros(2).log().long()), 5)]
    assert text == (
        "Nothing wrong found: in 2 results no NaN, Inf or underflow began. 1 op made Inf that was thrown away: only "
        "integers were made of it."
    )


def test_findings_of_several_steps_say_which():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def steps(count):
        for _ in range(count):
            weight.sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        torch.zeros(2).log()

    several, one = (check_sections(traced(lambda count=count: steps(count)), 5)[0] for count in (2, 0))
    assert [column.label for column in several.columns] == ["op", "kind", "phase", "step", *OTHERS]
    assert several.texts()[0][:4] == ["aten.log.default", "Inf", "other", "2"]
    assert [column.label for column in one.columns] == ["op", "kind", "phase", *OTHERS]


def test_more_findings_than_rows_are_counted():
    ops = (torch.log, torch.reciprocal, torch.log2, torch.log10)
    sections = check_sections(traced(lambda: [op(torch.zeros(2)) for op in ops]), 3)
    assert [row[0] for row in sections[0].texts()] == [f"aten.{name}.default" for name in ("log", "reciprocal", "log2")]
    assert sections[0].caption == "and 1 more"


def test_equal_findings_are_one_row_that_counts_the_calls():
    trace = traced(lambda: [torch.full((2,), at).log() for at in (0.0, 1.0, 0.0)])
    assert trace.findings["count"].tolist() == [2]
    section = check_sections(trace, 3)[0]
    assert [column.label for column in section.columns][:3] == ["op", "kind", "calls"]
    assert section.texts()[0][2] == "2 of 3"


def test_the_widget_shows_the_findings_above_the_op_table():
    trace = traced(lambda: torch.ones(2) / torch.zeros(2))
    tables, op_table = view_of(trace).widget(trace).children
    assert "aten.div.Tensor" in tables.value and "2 of 2 elements are Inf" in tables.value
    assert op_table.source.trace.ops.equals(trace.ops)


def test_a_sentence_is_shown_whole():
    trace = traced(lambda: torch.ones(2) / torch.zeros(2))
    assert '<td class="nbkit-sentence">2 of 2 elements are Inf' in static_table(trace)
