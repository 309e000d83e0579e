"""Tests NaN and Inf that no op of the step made: parameters, buffers, old gradients, unfilled memory, masks."""

import json
import math

import pytest
import torch
from torch import nn

from tests.capture.check.test_findings import found, kinds

INF, NAN = math.inf, math.nan


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def messages(step):
    return found(step).findings["message"].tolist()


def test_a_parameter_is_named_though_the_op_reads_a_view_of_it():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight.data[0, 0] = NAN
    assert messages(lambda: net(torch.ones(2, 3))) == ["1.weight was already NaN before this step (1 of 9 elements)"]


def test_running_statistics_are_named_at_their_own_position():
    net = nn.Sequential(nn.BatchNorm1d(2)).eval()
    net[0].running_var[1] = NAN
    [first] = found(lambda: net(torch.ones(3, 2))).findings.itertuples()
    assert (first.parameter, first.message.split()[0]) == ("0.running_var", "0.running_var")
    assert json.loads(first.evidence)["position"] == 4


def test_the_state_of_an_optimizer_and_an_old_gradient_are_told_apart():
    net = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.state[net.weight]["exp_avg_sq"][0, 0] = NAN
    assert messages(optimizer.step)[0].startswith("a gradient or the state of the optimizer is NaN, and no")
    net.weight.data.fill_(1)
    net.weight.grad[0, 0] = NAN
    first = messages(lambda: net(torch.ones(1, 2)).sum().backward())[0]
    assert first.startswith("the gradient of an earlier backward pass is NaN, and no recorded op made it so (1 of 2")


def test_memory_that_was_never_filled_is_no_clean_bill():
    def step():
        memory = torch.empty(3)
        memory.numpy().fill(NAN)  # as what was there before may be
        return memory * 2

    [first] = found(step).findings.itertuples()
    assert (first.rule, first.op) == ("input", "aten.mul.Tensor")
    assert first.message.startswith("holds 3 NaN in 3 elements that no recorded op put there: memory from empty()")


def test_a_number_that_is_nan_makes_a_nan_where_an_op_computes_with_it():
    net = nn.Linear(2, 1, bias=False)
    net(torch.ones(1, 2)).sum().backward()
    step = torch.optim.SGD(net.parameters(), lr=NAN, foreach=False).step
    expected = "2 of 2 elements are NaN, the first at [0, 0]; inputs there: 1, alpha=nan; it overwrote its input"
    assert messages(step) == [expected]


SCALE, TARGET = nn.Parameter(torch.tensor(NAN)), torch.tensor(NAN)
NUMBERS = {
    "a parameter": (lambda: (torch.ones(2, 2) * SCALE.exp()).mean(), "exp"),
    "a buffer": (lambda: torch.ones(2).mean() / TARGET, "div"),
    "a target": (lambda: nn.functional.mse_loss(torch.ones(()), TARGET), "mse_loss"),
    "made in the step": (lambda: torch.tensor(NAN) * torch.ones(2), "mul"),
    "moved to another dtype": (lambda: TARGET.double() * torch.ones(2), "mul"),
    "an Inf of a parameter": (lambda: torch.ones(2) * nn.Parameter(torch.tensor(INF)), "mul"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_a_nan_without_dimensions_that_is_computed_with_is_a_finding(case):
    step, op = NUMBERS[case]
    assert kinds(step) == [(op, "input")]


FILLS = {
    "where": lambda: torch.where(torch.eye(2) > 0, torch.tensor(-INF), torch.ones(2, 2)).softmax(-1),
    "where, a NaN": lambda: torch.where(torch.eye(2) > 0, torch.tensor(NAN), torch.ones(2, 2)).nansum(),
    "masked_fill": lambda: torch.ones(2, 2).masked_fill(torch.eye(2) > 0, torch.tensor(-INF)).softmax(-1),
    "another dtype": lambda: torch.ones(2).double().masked_fill(torch.eye(2)[0] > 0, torch.tensor(-INF).double()),
    "full": lambda: torch.full((2,), -INF) + 1,
    "a product": lambda: torch.ones(2) * INF,
    "a least value": lambda: torch.stack([torch.tensor(INF), torch.tensor(1.0)]).amin(),
}


@pytest.mark.parametrize("case", FILLS)
def test_an_inf_without_dimensions_and_a_nan_that_fills_memory_are_given(case):
    assert kinds(FILLS[case]) == []


def test_an_inf_that_came_in_explains_a_nan():
    net = nn.LSTM(4, 4)
    net.weight_ih_l0.data[0, 0] = INF
    [first] = found(lambda: net(torch.ones(1, 2, 4))[0].sum().backward()).findings.itertuples()
    assert (first.rule, first.parameter) == ("input", "weight_ih_l0")
    net.weight_ih_l0.data.fill_(INF)
    assert [rule for _, rule in kinds(lambda: net(torch.tensor([[[1.0, -1.0, 0.0, 0.0]]])))] == ["input"]


@pytest.mark.parametrize("split", [torch.chunk, torch.unsafe_chunk])
def test_a_part_that_is_finite_does_not_vouch_for_the_rest(split):
    weight = torch.eye(4)
    weight[0, 0] = NAN

    def step():
        first, second = split(torch.ones(2, 4) @ weight, 2, 1)
        return first + 1, first.add_(second)

    assert kinds(step) == [("mm", "input")]


MASK = torch.full((3, 3), -INF).triu(1)
MASKS = {
    "added": lambda: (torch.ones(3, 3) + MASK).softmax(-1),
    "of another dtype": lambda: (torch.ones(3, 3).bfloat16() + MASK.bfloat16()).softmax(-1),
    "gathered": lambda: (torch.ones(2, 3, 3) + torch.stack([MASK, MASK])).softmax(-1),
    "scores that came in masked": lambda: MASK.softmax(-1),
}


@pytest.mark.parametrize("case", MASKS)
def test_a_mask_made_before_the_step_is_no_finding(case):
    assert kinds(MASKS[case]) == []


def test_data_with_inf_that_is_no_mask_is_a_finding():
    data = torch.tensor([-INF, 1.0])
    assert kinds(lambda: (data + 1, data)) == [("add", "input")]
    assert kinds(lambda: data * torch.ones(2)) == [("mul", "input")]


def test_the_gradient_of_a_sparse_embedding_propagates():
    table = nn.Embedding(5, 3, sparse=True)
    table.weight.data.zero_()
    optimizer = torch.optim.SparseAdam(table.parameters())

    def step():
        table(torch.tensor([1, 2, 1])).sqrt().sum().backward()
        optimizer.step()

    first, *more = kinds(step)
    assert first == ("div", "inf") and "input" not in {kind for _, kind in more}


def test_a_buffer_that_other_processes_are_still_to_fill_is_no_finding():
    from torch.distributed.fsdp import fully_shard  # noqa: F401 # brings the ops of FSDP

    mine, buffer = torch.ones(2), torch.full((4,), NAN)

    def step():
        torch.ops.fsdp.all_gather_copy_in([mine], buffer, [2], 2, 0)
        buffer[2:].copy_(mine)  # as the collective does
        return buffer * 2

    trace = found(step)
    assert trace.findings.empty
    assert trace.meta["skipped"]["not looked at: buffers that other processes are still to fill"] == 1
