"""A recorded trace as an execution without values."""

import math

import torch
from torch import nn

import nbkit
from nbkit.analysis.align.traces.from_trace import NO_STATISTICS, trace_execution


def test_a_trace_gives_results_with_what_its_statistics_say() -> None:
    layer, x = nn.Linear(2, 2, bias=False), torch.tensor([[3.0, 4.0]])
    with torch.no_grad(), nbkit.optrace(values="stats") as trace:
        layer(x).relu()
    execution = trace_execution(trace)
    rows = [(r.kind, r.name, r.op, r.module, r.sources, r.call) for r in execution.results]
    assert rows == [
        ("parameter", "weight", None, None, (), None),
        ("op", "t_1", "aten.t.default", "", (0,), 0),
        ("constant", "constant_2", None, None, (), None),
        ("op", "mm_3", "aten.mm.default", "", (2, 1), 1),
        ("op", "relu_4", "aten.relu.default", None, (3,), 2),
    ]
    features = execution.results[2].features
    assert features is not None and (features.mean, features.min, features.max) == (3.5, 3.0, 4.0)
    assert math.isclose(features.rms, math.sqrt(12.5)) and math.isnan(features.mean_abs)
    assert (features.distinct, features.projections, features.symmetric) == (0, (), ())
    assert execution.outputs == {"relu_4": 4} and execution.recompute is None and not execution.notes


def test_a_trace_without_statistics_says_so() -> None:
    with nbkit.optrace() as trace:
        torch.ones(2).exp()
    execution = trace_execution(trace)
    assert execution.notes == (NO_STATISTICS,)
    assert [result.features for result in execution.results] == [None, None]
