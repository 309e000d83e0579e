"""The tables of an opcheck trace."""

import torch

import nbkit
from nbkit.verbs.opcheck import check_sections
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.view import view_of


def traced(step):
    with nbkit.opcheck() as trace:
        step()
    return trace


def test_the_ops_before_the_first_finding_are_listed():
    (section,) = check_sections(traced(lambda: (torch.ones(2).exp() / torch.zeros(2)).sin().log()), 5)
    assert section.title == "Where the inputs of the first finding came from"
    assert [row[0] for row in section.texts()] == ["aten.zeros.default", "aten.exp.default", "aten.ones.default"]


def test_a_healthy_trace_has_no_such_section():
    assert check_sections(traced(lambda: torch.ones(2).exp()), 5) == []


def test_the_step_of_a_finding_is_said_where_there_are_several():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def steps(count):
        for _ in range(count):
            weight.sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        torch.zeros(2).log()

    several, one = (traced(lambda count=count: steps(count)).brief() for count in (2, 0))
    assert "in step 2, " in several and "in step" not in one


def test_the_widget_shows_the_findings_above_the_op_table():
    trace = traced(lambda: torch.ones(2) / torch.zeros(2))
    widget = view_of(trace).widget(trace)
    assert "aten.div.Tensor" in widget.html and "2 of 2 elements are Inf" in widget.html
    assert "Where the inputs of the first finding came from" in widget.html
    assert widget.models[0].source.trace.ops.equals(trace.ops)


def test_a_sentence_is_shown_whole():
    trace = traced(lambda: torch.ones(2) / torch.zeros(2))
    assert "2 of 2 elements are Inf, the first at [0]" in static_table(trace)
