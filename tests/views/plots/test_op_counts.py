"""The chart of how often each op is there."""

import pytest
import torch

import nbkit
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.views.plots import draw_op_counts, plot_op_counts
from tests.support.fakes import small_trace


def aligned() -> Trace:
    layers = [torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.Tanh()]
    return nbkit.opalign(torch.nn.Sequential(*layers), torch.nn.Sequential(*layers[1:]), inputs=torch.ones(2))


def test_both_sides_of_an_alignment_are_counted() -> None:
    left, right = plot_op_counts(aligned()).data
    assert (left.name, right.name) == ("left: Sequential", "right: Sequential")
    assert dict(zip(left.y, left.x, strict=True)) == {"aten.tanh.default": 1, "aten.relu.default": 2}
    assert dict(zip(right.y, right.x, strict=True)) == {"aten.tanh.default": 1, "aten.relu.default": 1}
    axes = draw_op_counts(aligned()).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [1, 2, 1, 1]


def test_the_report_of_an_alignment_shows_them(tmp_path) -> None:
    page = nbkit.opreport(aligned(), path=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Number of results by op" in page


def test_ops_of_a_graph_and_of_a_step_are_counted_the_most_frequent_on_top() -> None:
    graph = nbkit.opgraph(torch.export.export(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()), (torch.ones(2),)))
    (bars,) = plot_op_counts(graph).data
    assert list(bars.x)[-1] == 2 and list(bars.text)[-1] == "2 ops"
    (bars,) = plot_op_counts(small_trace(), 1).data
    assert list(bars.x) == [small_trace().ops["op"].value_counts().max()]
    assert plot_op_counts(small_trace(), 1).layout.title.text.startswith("Number of ops, 1 of ")


def test_a_trace_without_ops_is_refused_and_a_graph_has_no_times() -> None:
    with pytest.raises(OptionError, match="has no ops to count; give one of nbkit.opalign, opgraph or optrace"):
        plot_op_counts(Trace({}, {"verb": "diff"}))
    with pytest.raises(OptionError, match=r"trace of opalign has no times of ops; nbkit.plot_op_counts\(trace\) draws"):
        nbkit.plot_ops(aligned())
