"""Tests opaudit on DTensors, in one process and in two: what it tells of a parameter is what torch holds there."""

import pytest
import torch
import torch.distributed as dist

import nbkit
from nbkit.capture.audit.measures import measured_gradient
from nbkit.capture.raw.shards import local_shard
from tests.capture.distributed.ranks import on_two_ranks
from tests.capture.distributed.steps import fully_sharded, replicated, sharded

BUILDS = {"dtensor": sharded, "fsdp2": fully_sharded}


def audited(name):
    """Returns what opaudit tells of a step, and what torch holds after it."""
    step, model = BUILDS[name]()
    before = [local_shard(parameter.detach()).clone() for parameter in model.parameters()]
    with nbkit.opaudit() as trace:
        step()
    rows, parameters = trace.parameters, list(model.parameters())
    told = [rows[column].tolist() for column in ("gradient_norm", "changed_fraction", "shape")]
    there = [
        [float(local_shard(parameter.grad).norm()) for parameter in parameters],
        [
            float((local_shard(parameter.detach()) != old).double().mean())
            for parameter, old in zip(parameters, before, strict=True)
        ],
        [str(list(old.shape)) for old in before],
    ]
    return told, there, trace.findings["rule"].tolist(), trace.brief().splitlines()[0]


def of_this_rank():
    return {name: audited(name) for name in BUILDS}


def agrees(told, there):
    return told[2] == there[2] and all(one == pytest.approx(two) for one, two in zip(told[:2], there[:2], strict=True))


@pytest.mark.full  # two processes, which import what FSDP needs
def test_gradients_and_changes_of_two_ranks_are_those_of_their_shards(tmp_path):
    for facts in on_two_ranks(of_this_rank, tmp_path):
        for told, there, rules, brief in facts.values():
            assert agrees(told, there)
            assert rules == []
            assert brief.endswith("4 parameters of Mlp: all got a gradient and moved.") or "FSDPMlp: all got" in brief


@pytest.fixture
def one_process():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_right_step_of_tensor_parallel_has_no_finding(one_process):
    told, there, rules, brief = audited("dtensor")
    assert agrees(told, there)
    assert rules == []
    assert brief == "Nothing wrong found. 4 parameters of Mlp: all got a gradient and moved."


def test_a_cut_is_found_in_a_tensor_parallel_step_as_in_others(one_process):
    _, model = sharded()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.zero_grad()
    with nbkit.opaudit() as trace:
        model.down(torch.relu(model.up(torch.ones(4, 8))).detach()).pow(2).sum().backward()
        optimizer.step()
    assert trace.parameters["gradient"].tolist() == ["none", "none", "finite", "finite"]


@pytest.mark.full
def test_zeros_in_one_part_of_a_gradient_are_not_zeros_of_all(tmp_path):
    assert on_two_ranks(zeros_in_one_part, tmp_path) == [[None, "zero"], ["finite", "zero"]]


def zeros_in_one_part():
    """Returns what is told of a gradient that is 0 in the first process alone, and of one that is 0 in both."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard

    mesh, rank = init_device_mesh("cpu", (2,)), dist.get_rank()
    made = [
        DTensor.from_local(torch.full((3,), float(rank)), mesh, [Shard(0)]),
        DTensor.from_local(torch.zeros(3), mesh, [Replicate()]),
    ]
    found = [measured_gradient(gradient) for gradient in made]
    return [None if one is None else one.state for one in found]


def past_the_wrapper():
    """Returns what opaudit finds of a step of DistributedDataParallel, and of one that calls its module instead."""
    step, model = replicated()
    with nbkit.opaudit() as right:
        step()
        with torch.no_grad():
            model.module(torch.randn(4, 8))
    with nbkit.opaudit() as wrong:
        model.module(torch.randn(4, 8)).sum().backward()
    return [trace.findings["rule"].tolist() for trace in (right, wrong)]


@pytest.mark.full  # two processes
def test_a_model_that_is_trained_past_its_wrapper_is_a_warning(tmp_path):
    for right, wrong in on_two_ranks(past_the_wrapper, tmp_path):
        assert "bypassed_wrapper" not in right
        assert "bypassed_wrapper" in wrong


class Pairs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.scale = torch.nn.Linear(6, 4), torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.encoder(x)


def contrasted(gathered):
    """Returns what is told of three steps whose loss has the features of all processes."""
    model = Pairs()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit() as trace:
        for _ in range(3):
            one, two = (gathered(model(torch.randn(5, 6))) for _ in range(2))
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(one @ two.T * model.scale, torch.arange(5)).backward()
            optimizer.step()
    return trace.findings


def listed(features):
    parts = [torch.zeros_like(features)]
    dist.all_gather(parts, features)
    return parts


def test_what_is_gathered_without_a_gradient_is_named(one_process):
    (finding,) = contrasted(lambda features: torch.cat(listed(features))).to_dict("records")
    assert (finding["rule"], finding["severity"], finding["op"]) == (
        "no_gradient",
        "warning",
        "c10d.allgather_.default",
    )
    assert finding["message"].startswith(
        "encoder (2 tensors) get no gradient; they reach the loss through c10d.allgather_ alone"
    )
    assert "dist.all_gather(parts, features)" in finding["message"]
    assert "parts[rank] = features" in finding["advice"]


def test_features_that_are_put_back_or_gathered_with_their_gradient_are_right(one_process):
    assert contrasted(lambda features: torch.cat([features, *listed(features)[1:]])).empty
    assert contrasted(lambda features: torch.cat(torch.distributed.nn.functional.all_gather(features))).empty
    model = torch.nn.Linear(4, 4)
    assert contrasted(lambda features: features + 0 * len(listed(model(features).detach()))).empty
