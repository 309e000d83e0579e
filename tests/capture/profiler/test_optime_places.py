"""Tests phase, module and forward op in optime of what runs in unusual places."""

import pytest
import torch
from torch import nn
from torch.profiler import profile, record_function

from nbkit.capture.profiler.ranges import MODULE_MARK, ROOT_MARK
from tests.capture.models import SeenOps, record
from tests.capture.timed import named, timed, timed_name


class Square(torch.autograd.Function):
    """Computes x * x, with a backward of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.mul(x, x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0] * 2


def test_a_hook_of_a_tensor_does_not_part_a_node_from_its_forward_op():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    def step():
        out = model(torch.ones(1, 2))
        out.register_hook(lambda gradient: gradient.exp())
        out.sum().backward()

    trace = timed(step)
    tanh, node = named(trace, "aten.tanh.default"), named(trace, "autograd::engine::evaluate_function: TanhBackward0")
    assert node["forward_op_id"].tolist() == tanh["op_id"].tolist()
    for op in ("aten.exp.default", "aten.tanh_backward.default"):
        assert named(trace, op)[["model", "module", "phase"]].to_numpy().tolist() == [["Sequential", "1", "backward"]]


def test_ops_inside_a_function_with_its_own_backward_are_forward_work():
    x = torch.ones(2, requires_grad=True)
    trace = timed(lambda: Square.apply(x).sum().backward())
    assert named(trace, "Square")["phase"].tolist() == ["forward"]
    assert named(trace, "aten.mul.Tensor")["phase"].tolist() == ["forward", "backward", "backward"]


def test_the_closure_of_an_optimizer_does_forward_and_backward_work():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).pow(2).mean()
        loss.backward()
        return loss

    trace = timed(lambda: optimizer.step(closure))
    assert set(named(trace, "aten.mean.default")["phase"]) == {"forward"}
    assert set(named(trace, "aten.addmm.default")["phase"]) == {"forward"}
    assert named(trace, "aten.pow.Tensor_Scalar")["phase"].tolist() == ["forward", "backward"] * 2
    assert set(named(trace, "aten.cat.default")["phase"]) == {"optimizer"}
    assert set(trace.ops.loc[trace.ops["op"] == "torch.optim.LBFGS.zero_grad", "phase"]) == {"optimizer"}


@pytest.mark.parametrize(
    "name",
    [
        f"{MODULE_MARK}7", "nbkit api call x", "nbkit collective ", ROOT_MARK, "aten::mm", "loss::compute", "torch.foo",
        "autograd::engine::evaluate_function: MulBackward0", "torch.autograd.backward", "Optimizer.step#.step", "",
        "ünï\n", "x" * 5000, "step",
    ],
)  # fmt: skip
def test_a_block_has_the_name_that_the_user_gave_it(name):
    def step():
        with record_function(name):
            torch.ones(1)

    trace = timed(step)
    assert trace.ops["op"].tolist()[:3] == ["step", name, timed_name("aten.ones.default")]
    assert trace.ops["level"].tolist()[:3] == ["range", "range", "aten"]
    assert set(trace.ops["phase"]) == {"other"}
    assert trace.ops["start_us"].is_monotonic_increasing
    assert trace.ops["start_us"].iloc[0] == 0.0


def test_calls_outside_of_modules_have_the_phase_that_optrace_gives_them():
    weight = torch.ones(2, 2, requires_grad=True)

    def step():
        loss = torch.nn.functional.mse_loss(weight * 2, torch.zeros(2, 2)) + weight.mean()
        loss.backward()

    seen, found = (
        trace.ops.loc[trace.ops["level"] == "api", ["op", "phase"]].to_numpy().tolist()
        for trace in (record(step), timed(step, stacks=True))
    )
    assert ["torch.nn.functional.mse_loss", "forward"] in seen
    assert [row for row in found if row[0] != "torch.autograd.backward"] == seen


def test_ops_below_anothers_dispatch_mode_are_forward_work():
    weight = torch.ones(2, 2, requires_grad=True)

    def step():
        with SeenOps():
            (weight @ weight).sum().backward()

    trace = timed(step)
    assert set(named(trace, "aten.mm.default")["phase"]) == {"forward", "backward"}
    with profile() as recorded:
        step()
    has_ranges = any(event.name == "PythonDispatchMode" for event in recorded.events())  # torch 2.8 and older: no
    assert set(named(trace, "PythonDispatchMode")["phase"]) == ({"forward", "backward"} if has_ranges else set())


def test_a_call_has_the_class_that_the_module_at_its_path_had_then():
    model = nn.Sequential(nn.Linear(2, 2))

    def step():
        model(torch.ones(1, 2))
        model[0] = nn.ReLU()
        model(torch.ones(1, 2))

    calls = timed(step).ops.query("level == 'module' and module == '0'")
    assert calls["op"].tolist() == ["Linear", "ReLU"]
    assert calls["module_call"].tolist() == [0, 0]


def test_a_graph_made_before_the_recording_has_no_forward_op_in_it():
    model = nn.Linear(2, 2)
    loss = model(torch.ones(1, 2)).sum()

    def step():
        model(torch.ones(1, 2))
        loss.backward()

    backward = timed(step).ops.query("phase == 'backward'")
    assert len(backward) > 10
    assert backward[["forward_op_id", "module"]].isna().all(axis=None)


def test_blocks_that_overlap_do_not_count_time_twice():
    first, second = record_function("first"), record_function("second")

    def step():
        first.__enter__()
        torch.ones(100).exp()
        second.__enter__()
        nn.Linear(2, 2)(torch.ones(1, 2))
        first.__exit__(None, None, None)
        torch.ones(100).exp()
        second.__exit__(None, None, None)

    ops = timed(step).ops
    assert ops.loc[ops["op"].isin(["first", "second"]), "parent_id"].tolist() == [0, 0]
    assert ops["self_time_us"].sum() == pytest.approx(ops["total_time_us"].iloc[0])


def test_a_module_that_cannot_be_asked_runs_is_counted_and_leaves_the_places_of_others():
    class Closed(nn.Module):
        def named_modules(self, *args, **kwargs):
            raise RuntimeError("closed")

        def forward(self, x):
            return x.exp()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(closed(x))

    closed, model, made = Closed(), Outer(), []
    trace = timed(lambda: made.append(model(torch.zeros(1, 2))))
    assert torch.equal(made[0], model.linear(torch.ones(1, 2)))
    assert trace.meta["skipped"]["module calls not described: Closed (RuntimeError)"] == 1
    places = [
        named(trace, op)[["model", "module"]].to_numpy().tolist() for op in ("aten.exp.default", "aten.t.default")
    ]
    assert places == [[["Outer", ""]], [["Outer", "linear"]]]


def test_an_encoder_keeps_its_fused_path_and_calls_after_it_have_their_lines():
    model, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.ones(1, 3, 8)
    with torch.no_grad():
        trace = timed(lambda: torch.relu(model(x)), stacks=True)
    assert len(named(trace, "aten._transformer_encoder_layer_fwd.default")) == 1
    (call,) = named(trace, "torch.relu").to_dict("records")
    assert "test_optime_places.py" in call["source"]
