#!/bin/sh
# all_reduce with MAX or MIN on gloo keeps a NaN of one rank in half of the elements and loses it in the others.
# Versions: torch 2.13.0, gloo, 2 processes.
# A good guess: a NaN on any rank is NaN in the maximum, as in torch.maximum, so that MAX finds overflows of any rank.
# Seen: of 8 elements that are NaN on rank 0 and 1 on rank 1, four are NaN afterwards and four are 1, on both ranks; which ones
# depends on how the tensor is cut into chunks. A tensor of one element keeps rank 0's NaN and loses rank 1's. SUM keeps all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - "$folder/store" <<'EOF'
import sys

import torch
import torch.distributed as dist
from torch.multiprocessing import start_processes


def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

    def nans(operation, numel, owner):
        x = torch.full((numel,), float("nan") if rank == owner else 1.0)
        dist.all_reduce(x, operation)
        return int(x.isnan().sum())

    kept = {(name, numel, owner): nans(operation, numel, owner)
            for name, operation in (("MAX", dist.ReduceOp.MAX), ("MIN", dist.ReduceOp.MIN), ("SUM", dist.ReduceOp.SUM))
            for numel in (1, 8) for owner in (0, 1)}
    if rank == 0:
        print("NaN elements by operation, elements, rank with the NaN:", kept, flush=True)
    for name in ("MAX", "MIN"):
        assert [kept[name, numel, owner] for numel in (1, 8) for owner in (0, 1)] == [1, 0, 4, 4]
    assert [kept["SUM", numel, owner] for numel in (1, 8) for owner in (0, 1)] == [1, 1, 8, 8]
    dist.destroy_process_group()


start_processes(work, args=(sys.argv[1],), nprocs=2, start_method="fork")
EOF
