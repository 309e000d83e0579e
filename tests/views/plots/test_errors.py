"""Errors in call order."""

import numpy as np
import pytest
import torch
from torch import nn

import nbkit
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.views.plots import plot_errors
from tests.support.fakes import small_trace


def diffed() -> Trace:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    with nbkit.opdiff() as trace:
        model(torch.ones(4, 8)).sum().backward()
    return trace


def test_points_are_the_noise_ratios_by_phase_and_the_threshold_is_a_line() -> None:
    trace = diffed()
    diffs = trace.diffs
    trace.frames["diffs"] = diffs.assign(
        noise_ratio=np.where(diffs.index == 3, 1e4, diffs["noise_ratio"]),
        status=np.where(diffs.index == 3, "mismatch", diffs["status"]),
    )
    figure = plot_errors(trace)
    points = {series.name: series for series in figure.data}
    assert points.keys() == set(diffs["phase"]) and {"forward", "backward"} <= points.keys()
    places = {x: y for series in points.values() for x, y in zip(series.x, series.y, strict=True)}
    above = trace.diffs["noise_ratio"][trace.diffs["noise_ratio"] > 0]
    assert {place: places[place] for place in above.index} == above.to_dict()
    lowest = {y for x, y in places.items() if trace.diffs["noise_ratio"][x] == 0}
    assert not lowest or lowest == {above.min() / 3}
    threshold, first = figure.layout.shapes
    assert (threshold.y0, first.x0) == (trace.meta["threshold"], 3.0)
    said = figure.layout.title.text.replace("<br>", " ")
    assert f"1 of {len(diffs)} results wrong, first {diffs['op'][3].split('.')[1]}" in said
    assert figure.layout.yaxis.type == "log" == figure.static().axes[0].get_yscale()


def test_the_first_divergence_of_two_models_is_marked_beside_what_is_allowed() -> None:
    torch.manual_seed(0)
    left = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8))
    right = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, eps=0.1), nn.Linear(8, 8))
    right.load_state_dict(left.state_dict())
    x = torch.randn(4, 8)
    trace = nbkit.opalign(left, right, inputs=[x])
    figure = plot_errors(trace)
    errors = {x: y for points in figure.data[:-1] for x, y in zip(points.x, points.y, strict=True)}
    lowest = min(errors.values())
    after = left[:2](x).detach(), right[:2](x).detach()
    expected = float((after[1] - after[0]).norm() / after[0].norm())
    (first,) = (shape.x0 for shape in figure.layout.shapes)
    assert first == trace.meta["first_divergence"]["row"] and errors[first] == pytest.approx(expected, rel=1e-3)
    assert lowest < min(figure.data[-1].y)  # what has no error stands below what is allowed
    assert figure.data[-1].name == "allowed" and "first divergence: " in figure.layout.title.text


def test_inf_stands_on_the_upper_edge() -> None:
    trace = diffed()
    trace.frames["diffs"] = trace.diffs.assign(noise_ratio=[np.inf, *trace.diffs["noise_ratio"][1:]])
    endless = plot_errors(trace).data[-1]
    finite = trace.diffs["noise_ratio"][1:].max()
    assert (endless.name, list(endless.x), list(endless.y)) == ("NaN or Inf", [0], [finite * 3])


def test_a_trace_that_compares_nothing_says_what_does() -> None:
    with pytest.raises(OptionError, match="compares nothing; opdiff and opalign record errors"):
        plot_errors(small_trace())
