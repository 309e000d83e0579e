"""Tests the frame of collectives of Chrome traces: of gloo's as torch.profiler writes them here, of NCCL's by hand."""

import json

import pandas as pd
import pytest
import torch
import torch.distributed as dist
from torch.profiler import profile

import nbkit
from tests.readers.cuda_trace import AROUND, COLLECTIVE, GROUP, device, events, runtime
from tests.readers.exports import slice_, written

MANY, GROUP_OF_TWO = list(range(64)), "default_pg (2 ranks)"


def call(start, external, dispatched, **args):
    """Makes a call of NCCL: of the dispatcher, what c10d records in it, the launch and the kernel."""
    told = {**COLLECTIVE, **GROUP, "dtype": "Float", **args}
    comms = slice_("cpu_op", "record_param_comms", start + 1, 8.0, External_id=external)
    kernel = device("kernel", "ncclDevKernel_Any(x)", start + 50, 30.0, stream=16, correlation=external)
    comms["args"] |= told
    kernel["args"] |= told
    launch = runtime("cudaLaunchKernelExC", start + 2, 5.0, external, external)
    around = [slice_("cpu_op", dispatched, start, 10.0, External_id=external + 1000)] if dispatched else []
    return [*around, comms, launch, kernel]


@pytest.fixture
def nccl(tmp_path):
    waits = slice_("cpu_op", "record_param_comms", 311.0, 1.0, External_id=77)
    waits["args"] |= {**GROUP, "Collective name": "wait", "Seq": 7}
    many = {"Process Group Name": "3", "Process Group Ranks": "[0, 1, ..., 63]", "Group size": 64}
    made = [
        *call(100.0, 201, "c10d::_allgather_base_", **{"Collective name": "_allgather_base", "Seq": 7, **many}),
        *call(300.0, 202, "c10d::allreduce_", Seq=8),
        waits,
        *call(500.0, 203, "c10d::send", **{"Collective name": "send", "Seq": 2, "Dst Rank": 1, "Src Rank": 0}),
        *call(700.0, 204, None, Seq=9),
    ]
    config = [{"pg_name": "3", "pg_desc": "all", "ranks": MANY}, {"pg_name": "0", "pg_desc": "pair", "ranks": [0, 1]}]
    info = {"backend": "nccl", "rank": 0, "world_size": 64, "pg_config": config}
    return nbkit.load(written(tmp_path / "rank0.json", made, **{**AROUND, "distributedInfo": info}))


def test_each_call_of_nccl_is_one_row_with_what_c10d_wrote(nccl):
    frame = nccl.collectives
    assert frame["op"].tolist() == ["all_gather", "all_reduce", "send", "all_reduce"]
    assert frame["seq"].tolist() == [7, 8, 2, 9]
    assert frame["is_p2p"].tolist() == [False, False, True, False]
    assert frame["peer"].fillna(-1).tolist() == [-1, -1, 1, -1]
    assert frame["size_bytes"].tolist() == [4000] * 4
    assert set(frame["input_shapes"]) == {"[[1000]]"}
    assert set(frame["output_dtypes"]) == {'["float32"]'}
    assert frame["rank"].tolist() == [0] * 4


def test_a_list_of_ranks_that_torch_cut_short_comes_from_the_files_list_of_groups(nccl):
    ranks = [json.loads(text) for text in nccl.collectives["group_ranks"]]
    assert ranks == [MANY, [0, 1], [0, 1], [0, 1]]


def test_a_transfer_ends_with_its_kernel(nccl):
    frame = nccl.collectives
    assert (frame["start_us"] + frame["duration_us"]).tolist()[:3] == [180.0 - 100, 380.0 - 100, 580.0 - 100]
    assert nccl.ops["op"][frame["op_id"]].tolist()[:3] == ["c10d._allgather_base_", "c10d.allreduce_", "c10d.send"]


def test_a_trace_of_one_collective_has_it_once(tmp_path):
    trace = nbkit.load(written(tmp_path / "rank0.json", events(), **AROUND))
    (row,) = trace.collectives.itertuples()
    assert (row.op, row.group, row.group_ranks, row.size_bytes) == (
        "all_reduce",
        "default_pg (2 ranks)",
        "[0, 1]",
        2000,
    )
    assert pd.isna(row.seq)
    assert (trace.meta["rank"], trace.meta["world_size"]) == (0, 2)
    assert trace.meta["started_ns"] == AROUND["baseTimeNanoseconds"]


def test_a_trace_of_one_process_has_no_frame(tmp_path):
    trace = nbkit.load(written(tmp_path / "alone.json", [slice_("cpu_op", "aten::mm", 1.0, 2.0, External_id=1)]))
    assert "collectives" not in trace.frames
    assert "rank" not in trace.meta


@pytest.mark.parametrize(
    "args",
    [
        {"Collective name": 7, "Seq": "many", "Process Group Ranks": "[0, x]", "dtype": None},
        {"Collective name": "allreduce", "Seq": -1, "Process Group Ranks": "[]]", "In msg nelems": "?"},
        {"Collective name": "", "Group size": {}},
    ],
)
def test_odd_values_cost_what_they_would_tell(tmp_path, args):
    comms = slice_("cpu_op", "record_param_comms", 5.0, 2.0, External_id=1)
    comms["args"] |= args
    info = {"distributedInfo": {"rank": "one", "pg_config": [None, {"ranks": 5}]}}
    trace = nbkit.load(
        written(tmp_path / "odd.json", [slice_("cpu_op", "aten::mm", 1.0, 2.0, External_id=2), comms], **info)
    )
    assert trace.collectives["seq"].isna().all()
    assert trace.collectives["group_ranks"].isna().all()
    assert "rank" not in trace.meta


def test_a_trace_of_gloo_has_the_calls_of_the_flight_recorder(tmp_path):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with profile(record_shapes=True) as profiler:
            dist.all_reduce(torch.ones(3, 2, dtype=torch.float64))
            dist.reduce_scatter_single(torch.empty(4), torch.ones(4))
            dist.all_gather([torch.empty(5)], torch.ones(5))
            dist.broadcast(torch.ones(2, dtype=torch.int32), 0)
            dist.all_reduce(torch.ones(6), async_op=True).wait()
            dist.barrier()
        entries = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(True, False))["entries"][-6:]
    finally:
        dist.destroy_process_group()
    profiler.export_chrome_trace(str(tmp_path / "gloo.json"))
    trace = nbkit.load(tmp_path / "gloo.json")
    frame = trace.collectives
    assert frame["op"].tolist() == ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_reduce", "barrier"]
    shapes = [[] if pd.isna(text) else json.loads(text) for text in frame["input_shapes"]]
    assert shapes == [entry["input_sizes"] for entry in entries]
    assert frame["size_bytes"].fillna(0).tolist() == [48, 16, 20, 8, 24, 0]
    assert set(frame["group"]) == {"default_pg (1 rank)"}
    assert frame["duration_us"].gt(0).all()
    started = [(trace.meta["started_ns"] + start * 1e3) for start in frame["start_us"]]
    assert [start <= entry["time_created_ns"] for start, entry in zip(started, entries, strict=True)] == [True] * 6
