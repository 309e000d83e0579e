"""The tables of an opaudit trace, its summary and its verdict."""

import torch
from torch import nn

import nbkit
from nbkit.views.sections.audit import audit_sections, looked_at_text
from nbkit.views.sections.findings import findings_sections
from nbkit.views.statements.verdict import audit_verdict


def traced(model, optimizer=None, is_detached=False):
    with nbkit.opaudit() as trace:
        z = model[0](torch.ones(2, 3))
        model[1](z.detach() if is_detached else z).sum().backward()
        if optimizer is not None:
            optimizer.step()
    return trace


def two_layers():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    return model, torch.optim.SGD(model.parameters(), 0.1)


def test_a_finding_stands_first_with_its_line_and_what_to_do():
    [findings, looked_at] = audit_sections(traced(*two_layers(), is_detached=True), 5)
    labels = ["severity", "rule", "what is so", "source", "line", "what to do"]
    assert [column.label for column in findings.columns] == labels
    [[severity, rule, message, _, line, advice]] = findings.texts()
    assert (severity, rule) == ("warning", "no gradient")
    assert message.startswith("0 (2 tensors) get no gradient; the graph is cut by aten.detach at ")
    assert line == "model[1](z.detach() if is_detached else z).sum().backward()"
    assert advice.startswith("Keep the values in tensors that autograd follows")
    assert looked_at.texts() == [["Sequential", "4", "0", "2", "4", "2"]]


def test_a_clean_audit_says_what_was_looked_at():
    trace = traced(*two_layers())
    text = "Nothing wrong found: 4 parameters of Sequential: all got a gradient and moved."
    assert audit_sections(trace, 5)[0].texts() == [[text]]
    assert audit_verdict(trace).sentences == ((text,),)
    assert audit_verdict(trace).tone == "good"
    assert text in trace.summary()


def test_frozen_parameters_and_steps_that_did_not_run_are_told():
    model, optimizer = two_layers()
    assert looked_at_text(traced(model)).endswith("all got a gradient, no optimizer stepped.")
    model.zero_grad()
    model[0].requires_grad_(False)
    expected = "4 parameters of Sequential, 2 of them frozen: all got a gradient and moved."
    assert looked_at_text(traced(model, optimizer)).endswith(expected)
    with torch.no_grad():
        optimizer.zero_grad()
        with nbkit.opaudit() as trace:
            model(torch.ones(1, 3))
    assert looked_at_text(trace).endswith("frozen: no gradient was computed.")


def test_an_audit_of_nothing_says_so():
    with nbkit.opaudit() as trace:
        torch.ones(2).exp()
    assert looked_at_text(trace).startswith("Not audited: no module ran")
    assert audit_verdict(trace).tone == ""


def test_the_verdict_names_the_worst_and_counts_the_rest():
    verdict = audit_verdict(traced(*two_layers(), is_detached=True))
    assert verdict.tone == "bad"
    [[first, *_]] = verdict.sentences
    assert first.startswith("Warning: 0 (2 tensors) get no gradient")


def test_any_trace_without_findings_shows_its_sentence():
    [section] = findings_sections(nbkit.Trace({}), 5, "All is well.")
    assert section.texts() == [["All is well."]]
