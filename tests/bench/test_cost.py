"""The bench of costs pairs predicted ops with recorded ones, and its parts run on small steps."""

import pandas as pd
import pytest
import torch

import nbkit
from bench.costs.predicted import Prediction, compared, matched, spearman, table
from bench.costs.speed import FAKE, OPCOST, TINY, speeds
from bench.costs.steps import STEPS
from nbkit.devices.device import Device
from tests.support.fakes import make_ops

TOY = Device("toy", {"float32": 1e11}, 1e10, 1.0, is_queued=False)


def toy():
    torch.manual_seed(0)
    model, x = (
        torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)),
        torch.ones(32, 64),
    )
    return lambda: model(x).square().sum().backward()


def test_a_step_is_predicted_and_measured():
    found = compared("toy", toy(), TOY, rounds=2)
    assert found.predicted_ms > 0 < found.measured_ms
    assert 0.8 * found.ops <= found.found <= found.ops and -1 <= found.rank_correlation <= 1


def test_a_recorded_op_is_found_with_what_runs_inside_it():
    rows = [
        {"op": "aten.mul.Tensor", "phase": "forward", "total_time_us": 9.0},
        {"op": "aten.mul.Tensor", "phase": "forward", "total_time_us": 4.0, "parent_id": 0},
        {"op": "aten.linear.default", "phase": "forward", "total_time_us": 8.0},
        {"op": "aten.add_.Tensor", "phase": "forward", "total_time_us": 5.0, "parent_id": 2},
        {"op": "aten.exp.default", "phase": "forward", "total_time_us": 1.0},
        {"op": "aten.exp.default", "phase": "forward", "total_time_us": 1.0},
    ]
    slow = [{**row, "total_time_us": row["total_time_us"] + 1} for row in rows]
    costs = pd.DataFrame({"op": ["aten.mul.Tensor", "aten.add.Tensor", "aten.exp.default"], "phase": "forward"})
    pairs = matched(costs, [make_ops(*slow), make_ops(*rows)])
    assert [*zip(pairs["op"], pairs["measured_us"], strict=True)] == [
        ("aten.mul.Tensor", 9.0),
        ("aten.add.Tensor", 5.0),
    ]


@pytest.mark.parametrize(("right", "expected"), [([1, 5, 9, 9.5], 1.0), ([4, 3, 2, 1], -1.0), ([1, 3, 2, 4], 0.8)])
def test_ranks_are_correlated(right, expected):
    assert spearman(pd.Series([1.0, 2.0, 30.0, 400.0]), pd.Series(right)) == pytest.approx(expected)


def test_the_table_has_errors_of_both_signs():
    text = table(
        [Prediction("a", 90.0, 100.0, 110.0, 5, 4, 0.95, 0.9), Prediction("b", 110.0, 100.0, 110.0, 5, 4, 0.5, 1)]
    )
    assert "-10.0%" in text and "+10.0%" in text and "0.950" in text and "1.000" in text


def test_opcost_is_measured_beside_fake_tensors():
    figures = {figure.what: figure for figure in speeds(1, TINY, 8)}
    assert figures[f"{OPCOST} to its result"].budget == 1.0
    assert figures[f"{OPCOST} / {FAKE}"].wall > 0


@pytest.mark.full
@pytest.mark.parametrize("model", STEPS)
def test_every_step_runs_on_shapes(model):
    costs = nbkit.opcost(device=TOY).run(STEPS[model]()).costs
    assert costs["flops"].sum() > 5e9 and costs["time_us"].notna().all()
