"""The tables of an opcost trace."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.trace.trace import Trace
from nbkit.verbs.registry import VERBS
from nbkit.views.panels.panel import Contents
from nbkit.views.sections.cost import cost_sections, costliest_calls
from tests.support.costs import layers, with_times


def test_totals_peak_and_modules_are_those_of_the_frames():
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
    x = torch.ones(16, 64)
    trace = nbkit.opcost().run(lambda: model(x).sum().backward())
    totals, peak, modules, ops = cost_sections(trace, 2)
    assert [[row[0], row[2]] for row in totals.rows] == [["forward", 73_728], ["backward", 81_920]]
    elementwise = trace.costs.groupby("phase", sort=False)["elementwise_flops"].sum()
    assert [row[3] for row in totals.rows] == elementwise.tolist()
    assert sum(row[1] for row in totals.rows) == len(trace.costs)
    assert sum(row[2] for row in peak.rows) == trace.memory["allocated_bytes"].max()
    assert [row[0] for row in modules.rows] == ["(root)", "0"]
    assert modules.caption == "and 2 more"
    assert [[row[0], row[2]] for row in ops.rows] == [["aten.addmm.default", 73_728], ["aten.mm.default", 81_920]][::-1]


def test_layers_that_are_alike_are_one_row_and_what_only_holds_them_none():
    modules = cost_sections(layers(), 9)[2]
    assert [row[0] for row in modules.rows] == ["(root)", "blocks.* ×4", "head"]
    assert modules.rows[1][2] == 4 * (16 * 16 + 16)


def test_predicted_times_are_a_column_of_each_table():
    sections = cost_sections(with_times(layers()), 9)
    assert [section.columns[-1].label for section in sections if section.title != "Memory at the peak"] == [
        "predicted time"
    ] * 3
    assert sum(row[-1] for row in sections[0].rows) == pytest.approx(with_times(layers()).costs["time_us"].sum())


def test_the_panel_of_a_report_lists_the_costliest_calls_where_no_script_runs():
    (panel,) = VERBS["opcost"].view.panels(Contents(layers()))
    assert panel.widget == "op_table" and costliest_calls(layers(), 50) in panel.static


def test_the_costliest_calls_come_first():
    html = costliest_calls(layers(), 3)
    assert html.count("<tr>") == 4
    assert html.count("aten.addmm.default") + html.count("aten.mm.default") == 3


def test_ops_without_a_rule_are_named():
    trace = nbkit.opcost().run(lambda: torch.ones(2, 2).neg())
    trace.meta["unknown_flops"] = {"mylib.twice.default": 3}
    assert cost_sections(trace, 5)[-1].rows == [["mylib.twice.default", 3]]


def test_a_trace_without_costs_has_none():
    assert cost_sections(Trace({}), 5) == [] and costliest_calls(Trace({}), 5) == ""
