"""A step that talks to other processes is none on shapes: opcost refuses it before it runs, and says what to do."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

import nbkit
from tests.capture.distributed.steps import Mlp, fully_sharded, replicated, sharded

PLAIN = r"the model as it was before parallelize_module\(\) or fully_shard\(\), and ask nbkit.what_if\("


@pytest.fixture(autouse=True)
def one_process():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("build", "advice"),
    [
        (sharded, f"a DTensor, which is spread over processes, as up.weight is; .*{PLAIN}"),
        pytest.param(fully_sharded, f"a DTensor, .* as up.weight is; .*{PLAIN}", marks=pytest.mark.full),
        (replicated, r"DistributedDataParallel, .*the model inside \(model.module\)"),
    ],
    ids=["dtensor", "fsdp2", "ddp"],
)
def test_the_step_is_refused_with_advice_that_holds_and_runs_afterwards_as_before(build, advice):
    step, _ = build()
    wanted = build()[0]()
    with pytest.raises(nbkit.CostError, match=advice):
        nbkit.opcost().run(step)
    assert step() == wanted


def test_the_advice_answers_what_a_rank_costs():
    model, x = Mlp(), torch.randn(4, 8)
    asked = nbkit.what_if(lambda: model(x).pow(2).sum().backward(), tensor_parallel=2)
    whole, part = (trace.costs["flops"].sum() for trace in (asked.baseline, asked.changed))
    assert part == pytest.approx(whole / 2, rel=0.1)


def test_a_dtensor_outside_of_modules_and_one_made_in_the_step_are_refused():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate

    mesh = init_device_mesh("cpu", (1,))
    made = DTensor.from_local(torch.randn(4, 4), mesh, [Replicate()])
    with pytest.raises(nbkit.CostError, match=PLAIN):
        nbkit.opcost().run(lambda: made @ made)
    with pytest.raises(nbkit.CostError, match=PLAIN):
        nbkit.opcost().run(lambda: DTensor.from_local(torch.randn(4, 4), mesh, [Replicate()]).exp())


def test_inference_of_a_replicated_model_is_counted_as_that_of_the_model_inside():
    model, x = nn.parallel.DistributedDataParallel(Mlp()), torch.randn(4, 8)
    with torch.no_grad(), nbkit.opcost() as replicas:
        model(x)
    with torch.no_grad(), nbkit.opcost() as one:
        model.module(x)
    assert replicas.costs["flops"].sum() == one.costs["flops"].sum() == 2 * (2 * 4 * 8 * 16)
