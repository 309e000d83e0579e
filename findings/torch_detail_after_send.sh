#!/bin/sh
# TORCH_DISTRIBUTED_DEBUG=DETAIL ends a right job: two ranks send and receive, and the next collective of all raises a mismatch.
# Versions: torch 2.13.0, gloo, 3 processes.
# A good guess: DETAIL only checks; a job that runs without it and makes the same collectives on all ranks runs with it, too.
# Seen: the checker compares one sequence number for all calls of the group, and a send or a receive counts in it: after a send
# from rank 0 to rank 1, rank 2 is one behind, and broadcast raises "Detected mismatch between collectives on ranks" in every
# rank, with the same op, shape and dtype on both sides of the message. Pipeline stages do so all the time.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --no-compile --target "$folder" torch==2.13.0 numpy==2.4.6
for level in OFF DETAIL; do
    TORCH_DISTRIBUTED_DEBUG=$level PYTHONPATH=$folder python3 - "$folder/store $level" $level <<'EOF'
import datetime
import sys

import torch
import torch.distributed as dist
from torch.multiprocessing import start_processes


def work(rank, store, level):
    timeout = datetime.timedelta(seconds=20)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=3, timeout=timeout)
    if rank == 0:
        dist.send(torch.ones(2), 1)
    if rank == 1:
        dist.recv(torch.ones(2), 0)
    try:
        dist.broadcast(torch.ones(3), 0)
        said = "fine"
    except RuntimeError as error:
        said = str(error).partition(", OpType")[0]
    print(f"{level}, rank {rank}: {said}", flush=True)
    assert ("Detected mismatch between collectives" in said) == (level == "DETAIL")


start_processes(work, args=(sys.argv[1], sys.argv[2]), nprocs=3, start_method="fork")
EOF
done
