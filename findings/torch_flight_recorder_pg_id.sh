#!/bin/sh
# In the dumps of torch's flight recorder one process group has another pg_id in each rank; and gloo's sends are not there at all.
# Versions: torch 2.13.0, gloo, 3 processes.
# A good guess: pg_id names the group, so that (pg_id, collective_seq_id) is the same call in the dumps of all ranks; and each
# call of torch.distributed is one entry.
# Seen: pg_id counts the groups of the process: the group of ranks 1 and 2 is 2 in rank 1 and 1 in rank 2, where 1 in rank 1 is
# the group of ranks 0 and 1. process_group has the name that all share. A send and a receive leave no entry and no p2p_seq_id,
# only a gap in op_id, and a reduce_scatter of 3 tensors is three entries gloo:all_reduce.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH=$folder python3 - "$folder/store" <<'EOF'
import pickle
import sys

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace
from torch.multiprocessing import start_processes


def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=3)
    first, second = dist.new_group([0, 1]), dist.new_group([1, 2])
    if rank < 2:
        dist.all_reduce(torch.ones(1), group=first)
        dist.send(torch.ones(7), 1) if rank == 0 else dist.recv(torch.ones(7), 0)
    if rank > 0:
        dist.all_reduce(torch.ones(1), group=second)
    dist.reduce_scatter(torch.empty(1), [torch.ones(1) for _ in range(3)])
    entries = pickle.loads(_dump_fr_trace())["entries"]
    seen = [(one["pg_id"], one["process_group"][0], one["profiling_name"]) for one in entries]
    print(f"rank {rank}: {seen}", flush=True)
    world = [(0, "0", "gloo:all_reduce")] * 3
    second_id = {1: 2, 2: 1}.get(rank)
    own = ([(1, "1", "gloo:all_reduce")] if rank < 2 else []) + ([(second_id, "2", "gloo:all_reduce")] if rank else [])
    assert seen == own + world
    dist.barrier()
    dist.destroy_process_group()


start_processes(work, args=(sys.argv[1],), nprocs=3, start_method="fork")
EOF
