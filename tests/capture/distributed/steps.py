"""Defines training steps that are spread over processes, and what a step leaves behind in one of them."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import nbkit
from nbkit import Trace
from nbkit.capture.raw.shards import local_shard
from tests.capture.models import Step, bits

VERBS = {"optrace": nbkit.optrace, "opcheck": nbkit.opcheck, "opdiff": nbkit.opdiff, "optime": nbkit.optime}
Make = Callable[[], tuple[Step, nn.Module]]


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.relu(self.up(x)))


def sharded() -> tuple[Step, nn.Module]:
    """Returns a tensor-parallel step, its parameters DTensors, and its model."""
    from torch.distributed.device_mesh import init_device_mesh  # these imports take long
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return _training(
        lambda model: parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    )


def fully_sharded() -> tuple[Step, nn.Module]:
    """Returns a step of FSDP2, and its model."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def spread(model: nn.Module) -> nn.Module:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for part in (model.up, model.down, model):
            fully_shard(part, mesh=mesh)
        return model

    return _training(spread)


def replicated() -> tuple[Step, nn.Module]:
    """Returns a step of DistributedDataParallel, and its model."""
    return _training(nn.parallel.DistributedDataParallel)


def _training(spread: Callable[[nn.Module], nn.Module]) -> tuple[Step, nn.Module]:
    torch.manual_seed(3)
    model = spread(Mlp())
    optimizer, x = torch.optim.AdamW(model.parameters()), torch.randn(4, 8) + dist.get_rank()

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        parameters = list(model.parameters())
        left = [loss, *parameters, *(parameter.grad for parameter in parameters)]
        return bits([local_shard(tensor.detach()) for tensor in left])

    step()  # what happens once, such as the first look at shapes, is not the step
    return step, model


def bare(make: Make) -> Any:
    """Returns what a step leaves behind without a recording."""
    return make()[0]()


def recorded(make: Make, verb: str, **options: Any) -> tuple[Trace, Any, nn.Module]:
    """Returns the trace of a step, what the step left behind, and its model."""
    step, model = make()
    with VERBS[verb](**options) as trace:
        left = step()
    return trace, left, model
