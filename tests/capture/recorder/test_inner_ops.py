"""inner_ops: optrace lists what torch.profiler lists of the bare step and what optime lists, with the same links."""

import pandas as pd
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import nbkit
from bench.families import BY_HAND
from nbkit.capture.native.library import library
from nbkit.errors import OptionError
from tests.capture.models import MODELS, aten, record, train_step
from tests.support.timed_names import timed_name

NATIVE = pytest.mark.skipif(library() is None, reason="the native recorder is not built")
# Some that no recorder was written for: double backward, custom losses, views written in place, sparse gradients.
FAMILIES = (
    *("Fourier transforms", "messages in a graph", "a flow", "CTC over a bidirectional LSTM"),
    *("PINN, second derivatives", "penalty on a gradient", "linear algebra", "embedding bags and distances"),
    *("attention with dropout", "a loss of each kind", "cumulative sums, sorting, quantiles"),
)


def step_of(name):
    torch.manual_seed(0)
    if name in MODELS:
        return train_step(name)
    model, loss = BY_HAND[name]()
    updates = torch.optim.AdamW(model.parameters())

    def step():
        torch.manual_seed(1)
        updates.zero_grad()
        loss().backward()
        updates.step()

    return step


def profiled(step):
    """Returns the names of the aten ops that torch.profiler has of a bare step, in call order."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name().startswith("aten::")]
    events.sort(key=lambda event: (event.start_ns(), -event.duration_ns()))
    return [event.name().replace("::", ".") for event in events]


def linked(trace):
    """Returns of each aten op its name and phase, and the places among them of the op around it and its forward op."""
    ops = trace.ops.set_index("op_id")
    is_aten = ops["level"] == "aten"
    places = {op_id: place for place, op_id in enumerate(ops.index[is_aten])}

    def around(op_id):
        parent = ops["parent_id"].loc[op_id]
        while not pd.isna(parent) and not is_aten.loc[parent]:
            parent = ops["parent_id"].loc[parent]
        return places.get(parent)

    rows = ops[is_aten]
    forward = [places.get(op_id) for op_id in rows["forward_op_id"]]
    return list(zip(rows["op"], rows["phase"], map(around, rows.index), forward, strict=True))


@NATIVE
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*MODELS, *(pytest.param(name, marks=pytest.mark.full) for name in FAMILIES)])
def test_a_step_has_the_rows_of_optime_and_of_the_profiler(name):
    step = step_of(name)
    step()
    bare = profiled(step)
    traced = record(step, inner_ops=True)
    with nbkit.optime() as timed:
        step()
    assert [row[0].rpartition(".")[0] for row in linked(traced)] == bare
    for mine, other in zip(linked(traced), linked(timed), strict=True):
        # optrace knows which API call an op came from, and what else that call ran.
        assert (timed_name(mine[0]), *mine[1:]) == (other[0], mine[1] if other[1] == "other" else other[1], *other[2:])
    assert len(bare) > 1.5 * len(aten(record(step)))


@NATIVE
def test_an_op_stands_in_the_op_that_calls_it():
    x, weight = torch.ones(2, 3), torch.ones(4, 3, requires_grad=True)
    trace = record(lambda: torch.nn.functional.linear(x, weight), inner_ops=True)
    rows = trace.ops.set_index("op_id")
    parents = [None if pd.isna(parent) else rows["op"].loc[parent] for parent in rows["parent_id"]]
    assert list(zip(rows["op"], parents, strict=True))[:5] == [
        ("torch.nn.functional.linear", None),
        ("aten.linear.default", "torch.nn.functional.linear"),
        ("aten.t.default", "aten.linear.default"),
        ("aten.transpose.int", "aten.t.default"),
        ("aten.as_strided.default", "aten.transpose.int"),
    ]
    out = trace.tensors[trace.tensors["role"] == "output"]
    results = out.set_index("op_id").loc[[1, rows.index[rows["op"] == "aten.mm.default"][0]]]
    assert results["tensor_id"].nunique() == 1 and results["requires_grad"].all()


@NATIVE
def test_self_time_leaves_out_what_inner_ops_take():
    x = torch.ones(64, 64)
    ops = record(lambda: torch.nn.functional.linear(x, x), inner_ops=True).ops.set_index("op_id")
    below = ops.groupby("parent_id")["total_time_us"].sum()
    expected = ops["total_time_us"] - below.reindex(ops.index).fillna(0)
    pd.testing.assert_series_equal(ops["self_time_us"], expected, check_names=False)


@NATIVE
def test_a_filter_brings_all_that_is_inside_an_op():
    x = torch.ones(2, 3)
    trace = record(lambda: torch.nn.functional.linear(x, x), inner_ops=True, ops="aten.linear")
    assert trace.ops["op"].tolist()[:3] == ["aten.linear.default", "aten.t.default", "aten.transpose.int"]


@NATIVE
def test_an_op_that_fails_inside_is_the_one_that_is_named():
    with pytest.raises(RuntimeError), nbkit.optrace(inner_ops=True) as trace:
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5))
    assert trace.ops["op"].iloc[trace.meta["error"]["op_id"]] == "aten.mm.default"


def test_it_needs_the_native_recorder(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    with pytest.raises(OptionError, match="run nbkit.build_recorder\\(\\) once"):
        nbkit.optrace(inner_ops=True)


def test_it_reads_no_values():
    with pytest.raises(OptionError, match="record the step once with each"):
        nbkit.optrace(inner_ops=True, values="stats")
