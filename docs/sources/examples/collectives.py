import torch
import torch.distributed as dist

import nbkit

# A group of one process, so that it runs anywhere; under torchrun it is dist.init_process_group("gloo").
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(4, 2)

with nbkit.optrace() as trace:
    model(torch.ones(3, 4)).sum().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    dist.barrier()
dist.destroy_process_group()

collectives = trace.collectives
print(collectives[["op", "group", "seq", "input_shapes", "size_bytes", "source"]].to_string(index=False))
