"""Tests optime: every event of the profiler once, nested on one timeline, with modules, phases and forward partners."""

import numpy as np
import pytest
import torch
from torch import nn

from nbkit.schema import MODULES, OPS
from tests.capture.models import MODELS, OPTIMIZERS, bits, record, train_step, trained
from tests.capture.timed import level, named, profiler_counts, recorded_counts, timed, timed_name


@pytest.mark.parametrize("model", MODELS)
def test_every_aten_event_of_the_profiler_is_a_row_exactly_once(model):
    step = train_step(model)
    step()  # the first step makes the optimizer's state
    counts = profiler_counts(step)
    assert recorded_counts(timed(step)) == counts
    assert counts.total() > 100


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_three_training_steps_compute_the_same_bits(model, optimizer):
    bare, recorded = bits(trained(model, optimizer)), []
    timed(lambda: recorded.extend(bits(trained(model, optimizer))), memory=True, stacks=True, shapes=True)
    assert recorded == bare


@pytest.mark.parametrize("model", MODELS)
def test_self_times_add_up_to_the_wall_time(model):
    """Time that got lost is missing in each recording; in some, another process ran outside of the rows."""
    step, parts = train_step(model), []
    while not parts or (max(parts) < 0.95 and len(parts) < 20):
        trace = timed(step)
        total = trace.ops["self_time_us"].sum()
        assert trace.ops["total_time_us"].iloc[0] == pytest.approx(total)
        parts.append(total / trace.meta["wall_us"])
    assert 0.95 < max(parts) < 1.05


@pytest.mark.parametrize("model", MODELS)
def test_every_row_lies_inside_its_parent(model):
    ops = timed(train_step(model)).ops
    below = ops[ops["parent_id"].notna()]
    parent = ops.loc[below["parent_id"]]
    start, end = below["start_us"].to_numpy(), (below["start_us"] + below["total_time_us"]).to_numpy()
    around, until = parent["start_us"].to_numpy(), (parent["start_us"] + parent["total_time_us"]).to_numpy()
    assert len(below) == len(ops) - 1
    assert (around <= start).all()
    assert (end <= until + 1e-6).all()
    assert (below["parent_id"].to_numpy(np.int64) < below["op_id"].to_numpy()).all()


@pytest.mark.parametrize("model", ["rwkv4", "llama"])
def test_every_forward_op_has_its_module_and_every_backward_op_its_forward_op(model):
    ops = level(timed(train_step(model)), "aten")
    forward, backward = ops[ops["phase"] == "forward"], ops[ops["phase"] == "backward"]
    assert forward["module"].notna().all()
    # Without a partner are only the first gradient and what adds gradients up in a parameter (its module is known).
    unlinked = backward[backward["forward_op_id"].isna()]
    first = ("aten.ones_like.default", "aten.empty_like.default", "aten.empty_strided.default", "aten.fill_.Scalar")
    assert set(unlinked.loc[unlinked["module"].isna(), "op"]) == {*map(timed_name, first)}
    added = {timed_name("aten.detach.default"), timed_name("aten.add_.Tensor")}
    assert set(unlinked.loc[unlinked["module"].notna(), "op"]) <= added
    assert len(unlinked) < len(backward) / 5


@pytest.mark.parametrize("model", ["rwkv4", "llama", "conv", "gru"])
def test_modules_and_phases_are_those_of_optrace(model):
    """The two recorders see the step by different means: matrix products stand in the same modules and phases."""
    step = train_step(model)
    step()
    columns = ["op", "model", "module", "module_call", "phase"]
    heavy = ("aten.mm.default", "aten.addmm.default", "aten.convolution_backward.default")
    seen = record(step).ops
    timed_rows, seen_rows = (
        rows[rows["op"].isin([*map(timed_name, heavy)])][columns].astype(str).value_counts().to_dict()
        for rows in (timed(step).ops, seen.assign(op=seen["op"].map(timed_name)))
    )
    assert timed_rows == seen_rows
    assert sum(timed_rows.values()) > 3


def test_the_levels_of_a_training_step():
    step = train_step("mlp")
    step()
    trace = timed(step)
    assert trace.ops["op"].iloc[0] == "step"
    assert level(trace, "module")["op"].tolist() == ["Sequential", *[type(part).__name__ for part in MODELS["mlp"]()]]
    assert level(trace, "module")["module"].tolist() == ["", *map(str, range(7))]
    calls = ["torch.optim.AdamW.zero_grad", "torch.autograd.backward", "torch.optim.AdamW.step"]
    assert level(trace, "api")["op"].tolist() == calls
    assert set(named(trace, "aten.addcdiv_.default")["phase"]) <= {"optimizer"}
    assert OPS.check(trace.ops) is trace.ops
    assert MODULES.check(trace.modules)["calls"].tolist() == [1] * 8


def test_the_optimizer_has_its_own_phase_and_counts_its_steps():
    step = train_step("mlp")

    def three_steps():
        for _ in range(3):
            step()

    trace = timed(three_steps)
    steps = trace.ops[trace.ops["op"] == "torch.optim.AdamW.step"]
    assert steps["step"].tolist() == [0, 1, 2]
    assert set(steps["phase"]) == {"optimizer"}
    assert level(trace, "module").loc[trace.ops["module"] == "", "step"].tolist() == [0, 1, 2]
    assert set(trace.ops.loc[trace.ops["parent_id"].isin(steps["op_id"]), "phase"]) == {"optimizer"}


def test_a_recomputed_part_runs_in_its_modules_during_the_backward_pass():
    part = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.randn(2, 4, requires_grad=True)
    trace = timed(lambda: torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False).sum().backward())
    products = named(trace, "aten.addmm.default")
    assert products["phase"].tolist() == ["forward", "backward"]
    assert products["module"].tolist() == ["0", "0"]
    assert products["module_call"].tolist() == [0, 1]
    assert products["forward_op_id"].isna().all()


def test_ops_outside_of_modules_are_forward_work_if_a_gradient_needs_them():
    weight = torch.randn(3, 3, requires_grad=True)
    trace = timed(lambda: (weight @ weight).sum().backward())
    assert set(named(trace, "aten.mm.default")["phase"]) == {"forward", "backward"}
    product = named(trace, "aten.mm.default")
    assert product["forward_op_id"].isna().tolist() == [True, False, False]
    assert product["forward_op_id"].iloc[1] == product["op_id"].iloc[0]
    assert set(timed(lambda: torch.ones(2) + 1).ops["phase"]) == {"other"}


def test_shapes_and_flops_of_matrix_products():
    left, right = torch.randn(2, 3), torch.randn(3, 5)
    trace = timed(lambda: left @ right, shapes=True)
    product = named(trace, "aten.mm.default").iloc[0]
    assert product["input_shapes"] == "[[2, 3], [3, 5]]"
    assert product["flops"] == 2 * 2 * 3 * 5
    bare = named(timed(lambda: left @ right), "aten.mm.default").iloc[0]
    assert bare[["input_shapes", "flops"]].isna().all()


def test_stacks_give_the_calls_of_torch_and_their_lines():
    x = torch.ones(3)

    def step():
        y = x * 2
        return torch.nn.functional.relu(y)

    trace = timed(step, stacks=True)
    calls = level(trace, "api")
    line = step.__code__.co_firstlineno
    assert calls["op"].tolist() == ["torch.Tensor.mul", "torch.nn.functional.relu"]
    assert [source.rpartition(":")[2] for source in calls["source"]] == [str(line + 1), str(line + 2)]
    parents = trace.ops.set_index("op_id")["op"].loc[named(trace, "aten.relu.default")["parent_id"]]
    assert parents.tolist() == ["torch.nn.functional.relu"]
    assert trace.ops["source"].iloc[1:].notna().all()


def test_stacks_of_a_training_step_hold_no_call_of_the_profiler():
    step = train_step("mlp")
    step()
    trace = timed(step, stacks=True)
    assert not trace.ops["op"].str.startswith("profiler").any()
    assert named(trace, "torch.Tensor.backward")["phase"].tolist() == ["backward"]
    assert trace.meta["devices"] == ["cpu"]
