"""Where the inputs of an op came from."""

import pytest
import torch

import nbkit


def traced(step):
    with nbkit.optrace() as trace:
        step()
    return trace


def op_id(trace, name):
    return int(trace.ops.loc[trace.ops["op"] == name, "op_id"].iloc[-1])


def test_the_chain_leads_back_through_views_to_what_was_given():
    x, y = torch.ones(2, 3), torch.ones(3, 2)
    trace = traced(lambda: ((x * 2).view(3, 2) - y.exp()).tanh())
    found = nbkit.producers(trace, op_id(trace, "aten.tanh.default"))
    names = found["op"].str.split(".").str[1]
    assert list(zip(names, found["distance"], strict=True)) == [("sub", 1), ("exp", 2), ("mul", 2)]


def test_a_write_through_a_view_counts():
    def step():
        x = torch.zeros(4)
        x[1:].fill_(2)
        x.exp()

    trace = traced(step)
    found = nbkit.producers(trace, op_id(trace, "aten.exp.default"), depth=1)
    assert found["op"].tolist() == ["aten.fill_.Scalar"]


def test_the_depth_ends_the_chain():
    trace = traced(lambda: torch.ones(2).exp().exp().exp().exp())
    assert nbkit.producers(trace, op_id(trace, "aten.exp.default"), depth=2)["distance"].tolist() == [1, 2]


def test_an_op_that_is_not_there_is_refused():
    with pytest.raises(nbkit.OptionError, match="op_id=99 is not in the trace"):
        nbkit.producers(traced(lambda: torch.ones(2).exp()), 99)
