"""What a brief and a report say first of a step beside a run that was recorded before."""

import torch
from torch import nn

import nbkit
from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from nbkit.views.statements.against import QUESTION, against_statements
from nbkit.views.statements.statement import Link, Words, words_text
from tests.support.fakes import small_trace


def training() -> tuple[nn.Module, Trace]:
    """A model after a step, with the trace of another one before."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.rand(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    model.step = step
    with nbkit.optrace(values="stats", name="before") as before:
        step()
    return model, before


def against(before: Trace, step) -> Trace:
    with nbkit.opdiff(against=before) as trace:
        step()
    return trace


def words_of(trace: Trace) -> list[Words]:
    return [words for one in against_statements(trace) for words in one.sentences]


def told(trace: Trace) -> list[str]:
    return [words_text(words) for words in brief_of(trace).verdict]


def test_a_step_that_differs_says_first_where_and_by_how_much() -> None:
    model, before = training()
    trace = against(before, model.step)
    first = trace.meta["first_divergence"]
    said, counts = told(trace), trace.alignment["error_class"].value_counts()
    assert said[0].startswith("The step differs from before, first at aten.t.default in 0, forward (")
    assert said[0].endswith(f": {first['message']}.") and "input 0 (0.weight) differs" in said[0]
    differ, whole = int(counts.sum() - counts["clean"]), int(counts.sum())
    assert said[1] == (
        f"Its result differs by {first['output_error']:.3g} there. Results of {differ} of {whole} ops in both differ."
    )
    assert brief_of(trace).tone == "bad" and "Nothing wrong" not in trace.brief()
    assert trace.brief().split("\n\n")[0].startswith("The step differs from before")
    assert "The step differs from before" in trace._repr_mimebundle_()[0]["text/html"]
    assert Link("aten.t.default", "op_table", first["op_id"]) in words_of(trace)[0]


def test_a_step_that_agrees_says_so_before_its_verdict() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), torch.rand(3, 4)
    with nbkit.optrace(values="stats", name="before") as before:
        model(x)
    trace = against(before, lambda: model(x))
    assert told(trace)[:2] == [
        "The step agrees with before: no value differs beyond rounding in 2 ops of both.",
        "Nothing wrong found.",
    ]
    assert brief_of(trace).tone == "good"
    more = against(before, lambda: model(x).exp().sum())
    assert told(more)[1] == "It has 3 ops that before has not, and lacks 0 of it."


def test_an_op_of_the_other_run_alone_is_named_without_a_link() -> None:
    with nbkit.optrace(values="stats", name="before") as before:
        torch.ones(3).mul(2).exp()
    trace = against(before, lambda: torch.ones(3).exp())
    words = words_of(trace)
    assert words_text(words[0]).startswith("The step differs from before, first at aten.mul.Tensor outside modules")
    assert not any(isinstance(part, Link) for part in words[0])
    assert words_text(words[1]).startswith("Left is the step, right is before. Results of 1 of 2 ops in both differ")


def test_a_run_of_something_else_was_not_compared() -> None:
    with nbkit.optrace(values="stats", name="before") as before:
        torch.eye(3).sum()
    x = torch.eye(3)
    trace = against(before, lambda: x.exp())
    assert told(trace)[0].startswith("Nothing of the step was compared with before")
    assert [one.tone for one in against_statements(trace)] == [""]


def test_other_traces_are_compared_with_no_run() -> None:
    with nbkit.opdiff(against="cpu:float64") as trace:
        torch.rand(3).exp()
    for other in (trace, small_trace()):
        assert against_statements(other) == []


def test_a_report_answers_it_on_its_first_screen() -> None:
    model, before = training()
    (chapter,) = chapters([Contents(against(before, model.step))])
    (answer,) = (one for one in chapter.answers if one.question == QUESTION)
    assert answer.tone == "bad" and words_text(answer.sentences[0]).startswith("The step differs from before")
