"""optrace(values="stats") tells NaN as opcheck does; of memory that nothing has written to nothing is known."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

import nbkit
from nbkit.views.brief.brief import brief_of
from nbkit.views.statements.statement import words_text


@pytest.fixture(autouse=True)
def _nan_in_new_memory() -> Iterator[None]:
    """Has torch fill what empty() gives with NaN, which is there by chance otherwise."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)


def traced(step, **options):
    with nbkit.optrace(values="stats", **options) as trace:
        step()
    return trace


def dropout_and_mask():
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    y = net(torch.ones(4, 8))
    mask = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf)
    ((y @ y.t() + mask).softmax(-1)).sum().backward()


def zero_by_zero():
    (torch.zeros(2) / torch.zeros(2) + torch.zeros(4)[:2]).sum()


def told(trace):
    return " ".join(words_text(words) for words in brief_of(trace).verdict)


def test_dropout_and_a_mask_are_no_alarm_as_in_opcheck():
    trace = traced(dropout_and_mask)
    with nbkit.opcheck() as checked:
        dropout_and_mask()
    assert len(trace.findings) == len(checked.findings) == 0
    assert brief_of(trace).tone == "good"
    assert told(trace).startswith("Nothing wrong found. In ")
    assert "Inf constants that are expected, such as the -Inf of a mask." in told(trace)
    assert "no NaN" in told(trace) and "opcheck" not in brief_of(trace).not_looked_at


def test_a_true_nan_is_told_with_its_op_as_in_opcheck():
    trace = traced(zero_by_zero)
    with nbkit.opcheck() as checked:
        zero_by_zero()
    assert trace.findings["message"].tolist() == checked.findings["message"].tolist()
    assert trace.findings["op"].tolist() == ["aten.div.Tensor"]
    assert brief_of(trace).tone == "bad" and "1 error." in told(trace)


def counts(trace):
    rows = trace.tensors.merge(trace.ops[["op_id", "op"]], on="op_id")
    names = rows["op"].str.split(".").str[1]
    return [
        (op, role, None if nan != nan else int(nan))
        for op, role, nan in zip(names, rows["role"], rows["nan_count"].astype("float64"), strict=True)
    ]


@pytest.mark.parametrize("options", [{}, {"ops": "*"}])
def test_memory_has_no_statistics_until_it_is_written(options):
    def step():
        x = torch.empty(4)
        x[1:].unsqueeze(0)
        x.fill_(2)
        x.clone()

    assert counts(traced(step, **options)) == [
        ("empty", "output", None),
        ("slice", "input", None),
        ("slice", "output", None),
        ("unsqueeze", "input", None),
        ("unsqueeze", "output", None),
        ("fill_", "input", None),
        ("fill_", "output", 0),
        ("clone", "input", 0),
        ("clone", "output", 0),
    ]


def test_a_trace_agrees_with_itself_though_memory_was_not_written():
    trace = traced(dropout_and_mask)
    aligned = nbkit.opalign(trace, trace)
    assert (aligned.frames["alignment"]["mark"] == "=").all()
    assert told(aligned).startswith("The two agree: ")
    assert nbkit.compare_values(trace, trace).attrs["first_divergence"] is None


def test_under_a_filter_nan_is_counted_but_not_judged():
    trace = traced(zero_by_zero, ops="div")
    assert "findings" not in trace.frames
    assert told(trace).startswith("1 of 1 result holds NaN, first that of aten.div.Tensor")
    assert "nbkit.opcheck (NaN)" in brief_of(trace).not_looked_at
