"""Training steps on two processes over gloo: copies, shards, parts of layers, stages of a pipeline."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from bench.right.registry import Step, right, trained

WORLD = 2


def layers() -> nn.Sequential:
    torch.manual_seed(0)  # the same on each rank
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 4))


@right("copies that average gradients (DDP), float32", WORLD)
def copies() -> Step:
    model = nn.parallel.DistributedDataParallel(layers())
    torch.manual_seed(dist.get_rank() + 1)
    return trained(model, lambda m: F.cross_entropy(m(torch.randn(16, 16)), torch.randint(0, 4, (16,))))


@right("copies that average gradients (DDP), autocast", WORLD)
def copies_in_autocast() -> Step:
    model = nn.parallel.DistributedDataParallel(layers())
    torch.manual_seed(dist.get_rank() + 1)
    return trained(model, lambda m: F.cross_entropy(m(torch.randn(16, 16)), torch.randint(0, 4, (16,))), "autocast")


@right("sharded parameters (FSDP2), float32", WORLD)
def shards() -> Step:
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh("cpu", (WORLD,))
    model = layers()
    for part in model:
        if isinstance(part, nn.Linear):
            fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    torch.manual_seed(dist.get_rank() + 1)
    return trained(model, lambda m: F.cross_entropy(m(torch.randn(16, 16)), torch.randint(0, 4, (16,))))


@right("layers in parts (tensor parallel), float32", WORLD)
def parts() -> Step:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = dist.device_mesh.init_device_mesh("cpu", (WORLD,))
    model = parallelize_module(layers(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return trained(model, lambda m: F.cross_entropy(m(torch.randn(16, 16)), torch.randint(0, 4, (16,))))


@right("stages of a pipeline, float32", WORLD)
def stages() -> Step:
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank, whole = dist.get_rank(), layers()
    mine = whole[:2] if rank == 0 else whole[2:]
    schedule = ScheduleGPipe(PipelineStage(mine, rank, WORLD, torch.device("cpu")), 2, F.cross_entropy)
    optimizer = torch.optim.AdamW(mine.parameters(), 1e-2)

    def step() -> None:
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(torch.randn(16, 16))
        else:
            schedule.step(target=torch.randint(0, 4, (16,)))
        optimizer.step()

    return step
