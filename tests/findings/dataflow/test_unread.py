"""A line whose tensor nobody reads is named; what is read, returned, done in place or made on the way is right."""

import pytest
import torch
from torch import nn

import nbkit

LAYER = nn.Linear(4, 4)


class Meter:
    def __init__(self):
        self.sum = 0.0

    def add(self, value):
        self.sum = self.sum + value


METER = Meter()


def masked_and_dropped(x):
    x.masked_fill(x > 0, 0.0)
    return LAYER(x)


def clamped_and_dropped(x):
    x = LAYER(x)
    x.clamp(min=0)
    return x + 1


def transposed_and_dropped(x):
    x.transpose(0, 1)
    return LAYER(x)


def moved_to_half_precision_and_back(x):
    x.half()  # who times a kernel writes so, and waits for it
    return LAYER(x)


def draws_to_bring_a_generator_forward(x):
    x.bernoulli(0.5)
    return LAYER(x)


def in_place(x):
    x = LAYER(x)
    x.masked_fill_(x > 2, 0.0)
    x.unsqueeze_(0)
    return x.relu()


def assigned_and_read(x):
    x = x.clamp(min=0)
    return LAYER(x).view(-1).relu()


def given_to_a_meter(x):
    METER.add(x + 1)
    return LAYER(x)


def kept_in_a_list(x, kept=[]):
    kept.append(x.detach())
    return LAYER(x)


def made_on_several_lines(x):
    return LAYER(
        x.clamp(
            min=0
        )
    )  # fmt: skip


def warnings_of(function):
    with nbkit.opaudit() as trace:
        function(torch.randn(3, 4)).sum().backward()
    LAYER.zero_grad()
    return trace.findings[trace.findings["rule"] == "dropped_result"].to_dict("records")


@pytest.mark.parametrize(
    ("function", "method", "text"),
    [
        (masked_and_dropped, "masked_fill", "x.masked_fill(x > 0, 0.0)"),
        (clamped_and_dropped, "clamp", "x.clamp(min=0)"),
        (transposed_and_dropped, "transpose", "x.transpose(0, 1)"),
    ],
)
def test_a_dropped_result_is_named_with_its_line(function, method, text):
    (finding,) = warnings_of(function)
    assert finding["message"].startswith(f"{method} makes a tensor that no op reads")
    assert (finding["severity"], finding["source_text"]) == ("warning", text)
    assert finding["advice"].startswith(f"Assign the result, x = x.{method}(...)")


@pytest.mark.parametrize(
    "function",
    [moved_to_half_precision_and_back, draws_to_bring_a_generator_forward, in_place, assigned_and_read,
     given_to_a_meter, kept_in_a_list, made_on_several_lines],
)  # fmt: skip
def test_what_is_read_kept_or_in_place_is_right(function):
    assert warnings_of(function) == []


def test_the_last_result_of_a_cell_is_shown_and_not_dropped():
    with nbkit.opaudit() as trace:
        x = LAYER(torch.randn(3, 4))
        x.clamp(min=0)
    assert "dropped_result" not in trace.findings["rule"].tolist()
