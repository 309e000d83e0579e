"""Gradient flow by module, beside gradients read from the parameters themselves."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.views.plots import plot_gradients


class Net(nn.Module):
    """Has a layer that is never used, one that gets zeros and one that gets NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.unused, self.zero, self.bad = (nn.Linear(4, 4) for _ in range(4))
        self.last = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = self.first(x)
        return self.last(inside).sum() + 0.0 * self.zero(x).sum() + self.bad(x * 0.0).sum() * torch.tensor(0.0) / 0.0


def audited(model: nn.Module, x: torch.Tensor) -> Trace:
    with nbkit.opaudit() as trace:
        model(x).sum().backward()
    return trace


def test_bars_are_the_norms_of_the_gradients_in_the_order_of_the_model() -> None:
    model = Net()
    figure = plot_gradients(audited(model, torch.ones(2, 4)))
    (bars,) = (series for series in figure.data if series.type == "bar")
    expected = {
        name: sum(float(one.grad.double().square().sum()) for one in getattr(model, name).parameters()) ** 0.5
        for name in ("first", "last")
    }
    assert dict(zip(bars.y, bars.x, strict=True)) == pytest.approx(expected)
    assert list(figure.layout.yaxis.categoryarray) == ["last", "bad", "zero", "unused", "first"]


def test_modules_without_a_gradient_with_zeros_and_with_nan_are_marked() -> None:
    figure = plot_gradients(audited(Net(), torch.ones(2, 4)))
    marks = {series.name: list(series.y) for series in figure.data if series.type == "scatter"}
    assert marks == {"NaN or Inf": ["bad"], "no gradient": ["unused"], "all zero": ["zero"]}
    axes = figure.static().axes[0]
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"finite", *marks}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["last", "bad", "zero", "unused", "first"]


def test_modules_of_a_deep_model_are_drawn_with_what_they_hold() -> None:
    model = nn.Sequential(*(nn.Sequential(*(nn.Linear(2, 2) for _ in range(5))) for _ in range(9)))
    figure = plot_gradients(audited(model, torch.ones(1, 2)))
    (bars,) = figure.data
    assert list(bars.y) == [str(number) for number in range(9)]
    whole = sum(float(one.grad.double().square().sum()) for one in model[3].parameters()) ** 0.5
    assert bars.x[3] == pytest.approx(whole, rel=1e-5)
    assert "paths of 1 part at most, with all that is below" in figure.layout.title.text


def test_a_trace_without_gradients_says_what_records_them() -> None:
    with pytest.raises(OptionError, match="no gradients of parameters; opaudit and `python -m nbkit audit` record"):
        plot_gradients(Trace({}, {}))
