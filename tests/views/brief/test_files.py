"""What the brief of a file says: what a graph holds and which lines are missing, and which time of a trace is none."""

import json

import pytest
import torch
from torch import nn

import nbkit
from nbkit.trace.trace import Trace

PROGRAM = """{
    (%0) = "pd_op.data" () {name:"x",stop_gradient:[true]} : () -> builtin.tensor<2x3xf32>
    (%1) = "pd_op.relu" (%0) {stop_gradient:[true]} : (builtin.tensor<2x3xf32>) -> builtin.tensor<2x3xf32>
    (%2) = "pd_op.bad" (%1
    (%3) = "pd_op.relu" (%1) {stop_gradient:[true]} : (builtin.tensor<2x3xf32>) -> builtin.tensor<2x3xf32>
}"""


def test_a_graph_is_counted():
    graph = nbkit.opgraph(torch.export.export(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), (torch.ones(2, 4),)))
    counts = f"1 graph, {len(graph.nodes)} nodes, {len(graph.edges)} edges"
    assert graph.brief().endswith(f"opgraph Sequential: {counts}, torch {torch.__version__}.")


def test_a_line_that_could_not_be_read_is_told_and_the_rest_is_counted(tmp_path):
    (tmp_path / "program.txt").write_text(PROGRAM)
    graph = nbkit.load(tmp_path / "program.txt")
    assert graph.brief().startswith("3 ops. 1 line could not be read, line 4: ")
    assert "nothing recorded" not in graph.brief()
    broken = Trace(graph.frames, {**graph.meta, "complete": False}, graph.captured)
    broken.presenter = graph.presenter
    assert broken.brief().startswith("Incomplete: parts of the source could not be read.\n\n3 ops.")


@pytest.mark.parametrize("first", [86400_000_000, 1715583600000000])
def test_a_time_between_two_clocks_is_told_as_that(tmp_path, first):
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "dur": 5}
    events = [{**event, "ts": ts} for ts in (first, 1715583600000100, 1715583600000200)]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    said = nbkit.load(tmp_path / "trace.json").brief()
    note = "1715497200 s of it lie between two events: their clocks differ, or one has no time"
    assert (note in said) == (first == 86400_000_000)
