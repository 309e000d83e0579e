"""Tests device work on a timeline: whose it is, and what it makes of the times."""

import pytest

from nbkit.schema import OPS
from nbkit.timeline import timeline
from tests.timeline.makers import HOST, KERNEL, MODULE, RUNTIME, events

STEP = {"name": "step", "start": 1000, "end": 101000}
LINEAR = {
    "name": "Linear",
    "kind": MODULE,
    "start": 2000,
    "end": 22000,
    "model": "Net",
    "module": "fc",
    "module_call": 0,
}
MM = {"name": "aten::mm", "overload": "", "start": 3000, "end": 13000, "own_id": 5, "flops": 60}
LAUNCH = {"name": "cudaLaunchKernel", "kind": RUNTIME, "start": 4000, "end": 6000, "correlation": 9, "external_id": 5}
GEMM = {
    "name": "gemm<float>", "kind": KERNEL, "start": 20000, "end": 60000, "thread": 7,
    "correlation": 9, "external_id": 5, "device": "cuda:0", "stream": 7,
}  # fmt: skip


@pytest.fixture
def ops():
    return OPS.check(timeline(events(GEMM, LAUNCH, MM, LINEAR, STEP)).ops)


def test_modules_ops_launches_and_kernels_nest(ops):
    assert ops["op"].tolist() == ["step", "Linear", "aten.mm.default", "cudaLaunchKernel", "gemm<float>"]
    assert ops["level"].tolist() == ["range", "module", "aten", "runtime", "kernel"]
    assert ops["parent_id"].tolist()[1:] == [0, 1, 2, 3]
    assert ops["module"].tolist()[1:] == ["fc"] * 4
    assert ops["start_us"].tolist() == [0.0, 1.0, 2.0, 3.0, 19.0]
    assert ops["thread"].tolist() == [0] * 5


def test_device_times_go_to_the_op_that_launched(ops):
    assert ops["self_time_us"].tolist() == [80.0, 10.0, 8.0, 2.0, 40.0]
    assert ops["total_device_time_us"].tolist()[:3] == [40.0, 40.0, 40.0]
    assert ops["self_device_time_us"].tolist()[:3] == [0.0, 0.0, 40.0]
    assert ops["total_device_time_us"].isna().tolist() == [False, False, False, True, False]
    assert ops["self_device_time_us"].isna().tolist() == [False, False, False, True, True]
    assert ops["device"].tolist() == ["cpu", "cpu", "cuda:0", "cuda:0", "cuda:0"]
    assert ops["stream"].tolist()[4] == 7
    assert ops["stream"].isna().tolist() == [True] * 4 + [False]


def test_device_work_without_its_launch_hangs_under_its_op():
    ops = timeline(events(STEP, MM, {**GEMM, "correlation": 77})).ops
    assert ops["parent_id"].tolist()[1:] == [0, 1]
    assert ops["self_device_time_us"].tolist()[1] == 40.0
    loose = timeline(events(STEP, {**GEMM, "correlation": 77, "external_id": 0})).ops
    assert loose["parent_id"].isna().tolist() == [True, True]
    assert loose["thread"].tolist() == [0, 0]


def test_without_device_work_no_device_time_is_known():
    ops = timeline(events(STEP, MM)).ops
    assert ops[["total_device_time_us", "self_device_time_us", "stream"]].isna().all(axis=None)
    assert ops["flops"].tolist()[1] == 60


def test_a_backward_thread_carries_the_module_of_its_forward_op():
    forward = {**MM, "sequence": 3, "forward_thread": 0}
    node = {"name": "autograd::engine::evaluate_function: MmBackward0", "start": 30000, "end": 40000, "thread": 2}
    node |= {"sequence": 3, "forward_thread": 1}
    inner = {"name": "aten::mm", "overload": "", "start": 31000, "end": 32000, "thread": 2, "sequence": -1}
    grad = {
        "name": "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
        "start": 41000,
        "end": 42000,
    }
    ops = timeline(events(STEP, LINEAR, forward, node, inner, grad | {"thread": 2})).ops
    assert ops["thread"].tolist() == [0, 0, 0, 1, 1, 1]
    assert ops["phase"].tolist() == ["other", "forward", "forward", "backward", "backward", "backward"]
    assert ops["forward_op_id"].tolist()[3:5] == [2, 2]
    assert ops["forward_op_id"].isna().tolist() == [True, True, True, False, False, True]
    assert ops["module"].tolist()[1:] == ["fc"] * 5


def test_an_empty_timeline_has_no_rows():
    made = timeline(events())
    assert len(OPS.check(made.ops)) == 0
    assert made.memory is None


def test_the_order_of_the_events_does_not_matter():
    rows = [STEP, LINEAR, MM, LAUNCH, GEMM]
    there, back = timeline(events(*rows)).ops, timeline(events(*reversed(rows))).ops
    assert there.equals(back)
    assert [HOST, MODULE] == [0, 1]


def test_a_node_without_a_number_has_that_of_its_call_inside():
    forward = {**MM, "sequence": 3, "forward_thread": 0}
    node = {"name": "autograd::engine::evaluate_function: MmBackward0", "start": 30000, "end": 40000, "sequence": -1}
    hook = {"name": "aten::exp", "overload": "", "start": 31000, "end": 32000, "sequence": -1}
    call = {"name": "MmBackward0", "start": 33000, "end": 39000, "sequence": 3, "forward_thread": 1}
    ops = timeline(events(STEP, LINEAR, forward, node, hook, call)).ops
    assert ops["forward_op_id"].tolist()[3:] == [2, 2, 2]
    assert ops["module"].tolist()[3:] == ["fc"] * 3


def test_a_block_named_by_hand_is_what_its_name_says_and_no_more():
    block = {**MM, "block": 1}
    optimizer = {**block, "name": "Optimizer.step#SGD.step", "start": 14000, "end": 15000}
    ops = timeline(events(STEP, LINEAR, block, {**GEMM, "correlation": 0, "external_id": 5}, optimizer)).ops
    assert ops["op"].tolist()[2:4] == ["aten::mm", "torch.optim.SGD.step"]
    assert ops["level"].tolist()[2:4] == ["range", "api"]
    assert ops["device"].tolist()[2] == "cpu"


@pytest.mark.parametrize("start", [3500, 4000])
def test_work_that_a_devices_clock_puts_before_its_launch_still_follows_it(start):
    ops = timeline(events(STEP, LINEAR, MM, LAUNCH, {**GEMM, "start": start, "end": start + 40000})).ops
    assert ops["level"].tolist() == ["range", "module", "aten", "runtime", "kernel"]
    assert ops["parent_id"].tolist()[1:] == [0, 1, 2, 3]
    assert ops["start_us"].tolist()[4] == (start - 1000) / 1000


def test_time_in_two_blocks_that_overlap_is_of_the_later_one():
    first, second = {"name": "A", "start": 10000, "end": 60000}, {"name": "B", "start": 40000, "end": 80000}
    inside = {"name": "aten::add", "overload": "", "start": 30000, "end": 50000}
    ops = timeline(events(STEP, first, second)).ops
    assert ops["self_time_us"].tolist() == [30.0, 30.0, 40.0]
    ops = timeline(events(STEP, first, second, inside)).ops
    assert ops["op"].tolist() == ["step", "A", "aten.add.default", "B"]
    assert ops["parent_id"].tolist()[1:] == [0, 1, 0]
    assert ops["self_time_us"].tolist() == [30.0, 20.0, 10.0, 40.0]
    assert ops["self_time_us"].sum() == ops["total_time_us"].iloc[0]


def test_three_blocks_that_overlap_add_up():
    blocks = [{"name": name, "start": at, "end": at + 40000} for name, at in (("A", 5000), ("B", 15000), ("C", 30000))]
    ops = timeline(events(STEP, *blocks, {**blocks[0], "thread": 2})).ops
    assert ops.sort_values(["thread", "op_id"])["self_time_us"].tolist() == [35.0, 10.0, 15.0, 40.0, 40.0]


def test_flops_count_once_where_ops_of_known_flops_nest():
    outer = {**MM, "name": "aten::convolution"}
    inner = {**MM, "name": "aten::_convolution", "start": 5000, "end": 9000, "own_id": 6, "flops": 24}
    beside = {**MM, "start": 14000, "end": 15000, "own_id": 7, "flops": 24}
    nothing = {**MM, "start": 16000, "end": 17000, "own_id": 8, "flops": 0}
    ops = timeline(events(STEP, LINEAR, outer, inner, beside, nothing)).ops
    assert ops["flops"].fillna(-1).tolist() == [-1, -1, 60, -1, 24, -1]


@pytest.mark.parametrize(("within", "expected"), [("aten::mm", 24), ("aten::bmm", 24), ("aten::add", 60)])
def test_flops_of_a_product_that_holds_another_one_are_those_of_that_one(within, expected):
    inner = {**MM, "name": within, "start": 5000, "end": 9000, "own_id": 6, "flops": 24}
    inner = inner if within != "aten::add" else {**inner, "flops": -1}
    assert timeline(events(STEP, MM, inner)).ops["flops"].dropna().tolist() == [expected]


def test_what_has_no_line_of_its_own_has_that_of_the_call_around_it():
    other = {**MM, "start": 14000, "end": 15000, "own_id": 6, "source": "b.py:2"}
    ops = timeline(events(STEP, {**LINEAR, "source": "a.py:1"}, MM, other)).ops
    assert ops["source"].fillna("?").tolist() == ["?", "a.py:1", "a.py:1", "b.py:2"]


def test_a_backward_op_has_the_line_of_its_forward_op_unless_it_has_one_of_its_own():
    forward = {**MM, "sequence": 3, "forward_thread": 0, "source": "a.py:1"}
    call = {"name": "loss", "start": 25000, "end": 60000, "block": 1, "source": "train.py:9"}
    node = {"name": "autograd::engine::evaluate_function: MmBackward0", "start": 30000, "end": 40000}
    node |= {"sequence": 3, "forward_thread": 1}
    inner = {"name": "aten::mm", "overload": "", "start": 31000, "end": 32000, "sequence": -1}
    own = {"name": "aten::exp", "overload": "", "start": 33000, "end": 36000, "sequence": -1, "source": "b.py:2"}
    inside = {"name": "aten::mul", "overload": "", "start": 34000, "end": 35000, "sequence": -1}
    ops = timeline(events(STEP, LINEAR, forward, call, node, inner, own, inside)).ops
    assert ops["source"].tolist()[2:] == ["a.py:1", "train.py:9", "a.py:1", "a.py:1", "b.py:2", "b.py:2"]


def test_steps_are_counted_by_optimizer_steps_that_have_ended_not_by_zeroed_gradients():
    zero = {"name": "Optimizer.zero_grad#SGD.zero_grad", "start": 14000, "end": 15000}
    step = {"name": "Optimizer.step#SGD.step", "start": 16000, "end": 20000}
    inside = {**MM, "start": 17000, "end": 18000, "own_id": 6}
    after = {**MM, "start": 21000, "end": 22000, "own_id": 7}
    ops = timeline(events(STEP, MM, zero, step, inside, after)).ops
    assert ops["op"].tolist()[2:4] == ["torch.optim.SGD.zero_grad", "torch.optim.SGD.step"]
    assert ops["step"].tolist() == [0, 0, 0, 0, 0, 1]
