"""The tables of an opcost trace."""

import torch
from torch import nn

import nbkit
from nbkit import units
from nbkit.trace.trace import Trace
from nbkit.views.sections.cost import cost_sections


def test_totals_peak_and_modules_are_those_of_the_frames():
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
    x = torch.ones(16, 64)
    trace = nbkit.opcost().run(lambda: model(x).sum().backward())
    totals, peak, modules = cost_sections(trace, 2)
    assert [[row[0], row[2]] for row in totals.rows] == [["forward", "73.7 kFLOP"], ["backward", "81.9 kFLOP"]]
    elementwise = trace.costs.groupby("phase", sort=False)["elementwise_flops"].sum()
    assert [row[3] for row in totals.rows] == [units.flops(count) for count in elementwise]
    assert sum(row[1] for row in totals.rows) == len(trace.costs)
    assert sum(row[2] for row in peak.rows) == trace.memory["allocated_bytes"].max()
    assert [row[1] for row in modules.rows] == ["(root)", "0"]
    assert modules.caption == "and 2 more"


def test_ops_without_a_rule_are_named():
    trace = nbkit.opcost().run(lambda: torch.ones(2, 2).neg())
    trace.meta["unknown_flops"] = {"mylib.twice.default": 3}
    assert cost_sections(trace, 5)[-1].rows == [["mylib.twice.default", 3]]


def test_a_trace_without_costs_has_none():
    assert cost_sections(Trace({}), 5) == []
