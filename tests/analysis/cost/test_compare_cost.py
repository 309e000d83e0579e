"""Predicted costs beside measured times."""

import numpy as np
import pandas as pd
import pytest
import torch

import nbkit
from nbkit.analysis.cost.attained import Roofs, attained, roofs
from nbkit.errors import OptionError
from tests.support.costs import Stack, layers, with_times, work


@pytest.fixture(scope="module")
def both() -> tuple[nbkit.Trace, nbkit.Trace]:
    torch.manual_seed(0)
    model = Stack()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    x = torch.randn(32, 16)

    def step() -> None:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    timed = nbkit.optime(warmup=1).run(step)
    return nbkit.opcost().run(step), timed


def test_every_op_that_works_is_found_with_its_own_time(both: tuple[nbkit.Trace, nbkit.Trace]) -> None:
    trace, timed = both
    result = nbkit.compare_cost(trace, timed)
    assert result["op_id"].tolist() == trace.costs["op_id"].tolist()
    assert result.attrs["matched_fraction"] == 1.0
    found = result.dropna(subset=["measured_op_id"])
    rows = timed.ops.iloc[found["measured_op_id"].to_numpy("int64")]
    assert not found["measured_op_id"].duplicated().any()
    assert rows["op"].tolist() == found["op"].tolist()
    assert rows["module"].fillna("-").tolist() == found["module"].fillna("-").tolist()
    assert rows["total_time_us"].tolist() == found["measured_us"].tolist()


def test_an_op_that_the_timed_run_has_besides_moves_no_other_one() -> None:
    def step(*, is_twice: bool) -> torch.Tensor:
        x = torch.ones(4)
        if is_twice:
            x.exp()
        return x.exp().tanh().exp()

    timed = nbkit.optime(warmup=1).run(lambda: step(is_twice=True))
    result = nbkit.compare_cost(nbkit.opcost().run(lambda: step(is_twice=False)), timed)
    named = timed.ops[timed.ops["level"] == "aten"].reset_index(drop=True)
    exp, _, tanh, last = named.loc[named["op"].isin(["aten.exp.default", "aten.tanh.default"]), "op_id"]
    found = result.set_index("op")["measured_op_id"]
    assert found["aten.exp.default"].tolist() == [exp, last] and found["aten.tanh.default"] == tanh


def test_ops_that_ran_in_another_order_are_found_once_each() -> None:
    class Runs(torch.nn.Module):
        def __init__(self, *names: str) -> None:
            super().__init__()
            self.names = names

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for name in self.names:
                getattr(torch, name)(x)
            return x

    x = torch.ones(4)
    predicted = torch.nn.Sequential(Runs("tanh", "exp", "exp"), Runs("exp"))
    run = torch.nn.Sequential(Runs("exp", "exp", "tanh"), Runs())
    timed = nbkit.optime().run(lambda: run(x))
    result = nbkit.compare_cost(nbkit.opcost().run(lambda: predicted(x)), timed)
    first, second, tanh = timed.ops.loc[timed.ops["level"] == "aten", "op_id"]
    assert result["module"].tolist() == ["0", "0", "0", "1"]
    assert result["measured_op_id"].fillna(-1).tolist() == [tanh, first, second, -1]


def test_what_an_op_calls_is_in_its_time_and_no_op_of_its_own(both: tuple[nbkit.Trace, nbkit.Trace]) -> None:
    timed = both[1].ops.set_index("op_id")
    measured = set(nbkit.compare_cost(*both)["measured_op_id"].dropna())
    callers = timed["parent_id"].dropna()
    called = [op_id for op_id in callers.index if timed.at[op_id, "level"] == "aten" and callers[op_id] in measured]
    assert called and measured.isdisjoint(called)
    whole = {op_id: timed.at[op_id, "total_time_us"] for op_id in measured}
    assert all(timed.at[op_id, "total_time_us"] <= whole[callers[op_id]] for op_id in called)


def test_an_op_is_not_taken_for_one_that_the_op_before_it_calls() -> None:
    def step() -> None:
        torch.ones(4).fill_(2.0)

    timed = nbkit.optime().run(step)
    found = nbkit.compare_cost(nbkit.opcost().run(step), timed).set_index("op")["measured_op_id"]
    ones, _, inner, fill = timed.ops.loc[timed.ops["level"] == "aten", "op_id"]
    assert timed.ops.set_index("op_id").loc[inner, ["op", "parent_id"]].tolist() == ["aten.fill_.Scalar", ones]
    assert found.to_dict() == {"aten.ones.default": ones, "aten.fill_.Scalar": fill}


def test_predictions_stand_beside_their_measurements(both: tuple[nbkit.Trace, nbkit.Trace]) -> None:
    trace = with_times(both[0])
    result = nbkit.compare_cost(trace, both[1])
    assert result["predicted_us"].tolist() == trace.costs["time_us"].tolist()
    known = result.dropna(subset=["ratio"])
    np.testing.assert_allclose(known["ratio"], known["predicted_us"] / known["measured_us"])
    assert result.attrs["predicted_us"] == pytest.approx(known["predicted_us"].sum())
    ranks = known["predicted_us"].rank().corr(known["measured_us"].rank())
    assert result.attrs["rank_correlation"] == pytest.approx(ranks)


def test_a_kernels_time_is_that_of_the_op(both: tuple[nbkit.Trace, nbkit.Trace]) -> None:
    trace, timed = both
    on_device = nbkit.Trace({**timed.frames, "ops": timed.ops.assign(total_device_time_us=7.0)}, timed.meta)
    assert set(nbkit.compare_cost(trace, on_device)["measured_us"].dropna()) == {7.0}


def test_traces_of_another_kind_or_another_step_are_refused(both: tuple[nbkit.Trace, nbkit.Trace]) -> None:
    trace, timed = both
    with pytest.raises(OptionError, match=r"must be a timing, got .*; give a trace of nbkit\.optime\(\)"):
        nbkit.compare_cost(trace, trace)
    with pytest.raises(OptionError, match=r"has no costs; give a trace of nbkit\.opcost\(\)"):
        nbkit.compare_cost(timed, timed)
    other = nbkit.Trace({**timed.frames, "ops": timed.ops.assign(level="range")}, timed.meta)
    with pytest.raises(OptionError, match="share no op"):
        nbkit.compare_cost(trace, other)


def test_the_roofs_are_those_that_the_times_were_made_with() -> None:
    known = roofs(with_times(layers()))
    assert known.bytes_per_s == pytest.approx(1e9)
    assert known.flops_per_s == {"float32": pytest.approx(1e9)}


def test_the_roofs_of_a_known_device_are_its_own() -> None:
    trace = with_times(layers())
    peaks = {"float32": 2e9, "tf32": 8e9, "float64": 1e9}
    named = nbkit.Trace({}, {**trace.meta, "cost_device": {"name": "Tiny", "flops_per_s": peaks, "bytes_per_s": 3e9}})
    named.frames.update(trace.frames)
    assert roofs(named) == Roofs({"float32": 2e9, "tf32": 8e9}, 3e9)


def test_ops_stand_on_the_roofs_or_below_them() -> None:
    points = attained(with_times(layers()))
    roof = np.minimum(1e9, points["intensity"] * 1e9)
    assert (points["flops_per_s"] <= roof * (1 + 1e-9)).all()
    at_roof = points[points["bound"] != "launch"]
    np.testing.assert_allclose(at_roof["flops_per_s"], roof[at_roof.index])
    assert points["time_us"].is_monotonic_decreasing and points["calls"].sum() == (work(layers()) > 0).sum()


def test_flops_of_elementwise_ops_count_where_they_are_known() -> None:
    trace = with_times(layers())
    less, more = nbkit.Trace({}, trace.meta), nbkit.Trace({}, trace.meta)
    for one, count in ((less, 0), (more, 5)):
        elementwise = pd.array([count] * len(trace.costs), dtype="Int64")
        one.frames.update({**trace.frames, "costs": trace.costs.assign(elementwise_flops=elementwise)})
    assert len(attained(more)) > len(attained(less)) > 0


def test_without_predicted_times_there_is_no_roofline() -> None:
    with pytest.raises(OptionError, match=r"has no predicted times; give opcost a device"):
        attained(layers())
