#!/bin/sh
# item() and bool() of a DTensor that is a partial sum give each rank its own part, without an error.
# Versions: torch 2.13.0, gloo, 2 processes.
# A good guess: float(x.sum()) of a sharded tensor is the sum, as its repr, shape and full_tensor() are those of the whole.
# Seen: the sum of 0 to 11 over two ranks is 15 on one and 51 on the other; full_tensor() gives 66. Loss values in a log, and `if`
# of such a value, so differ between ranks.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - "$folder/store" <<'EOF'
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.multiprocessing import start_processes


def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    total = distribute_tensor(torch.arange(12.0), mesh, [Shard(0)]).sum()
    whole = total.full_tensor().item()
    print(f"rank {rank}: {total.placements}, item() {total.item()}, full_tensor() {whole}", flush=True)
    assert total.placements[0].is_partial()
    assert total.item() == (15, 51)[rank]
    assert whole == 66
    dist.destroy_process_group()


start_processes(work, args=(sys.argv[1],), nprocs=2, start_method="fork")
EOF
