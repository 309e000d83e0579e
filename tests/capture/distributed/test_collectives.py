"""Tests the frame of collectives on two processes: torch's flight recorder has the same calls and numbers."""

import json
import time
from math import prod

import pytest
import torch
import torch.distributed as dist
from torch import nn

import nbkit
from tests.capture.distributed.ranks import on_two_ranks
from tests.capture.distributed.steps import fully_sharded, replicated, sharded

pytestmark = pytest.mark.full  # two processes, which import what FSDP needs
VERBS = {"optrace": nbkit.optrace, "optime": nbkit.optime}
LATE_US = 60_000


def sequence_parallel():
    """Returns a step in which DTensors redistribute themselves inside of ops."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    weight = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    rows = distribute_tensor(torch.ones(6, 4), mesh, [Shard(0)])
    return lambda: torch.mm(rows, weight), None


def by_hand():
    """Returns calls of each kind, in a group of all and in one of this process alone."""
    alone = [dist.new_group([rank], group_desc="alone") for rank in range(2)][dist.get_rank()]
    other, x = 1 - dist.get_rank(), torch.ones(3, 2, dtype=torch.float64)

    def step():
        _late()
        dist.all_reduce(x)
        work = dist.all_reduce(torch.ones(5), async_op=True)
        sent = [dist.isend(torch.ones(7), other), dist.irecv(torch.ones(7), other)]
        [each.wait() for each in (work, *sent)]
        dist.broadcast(torch.ones(2, dtype=torch.int32), src=1)
        with dist._coalescing_manager():
            dist.all_reduce(torch.ones(4))
            dist.all_reduce(torch.ones(6))
        dist.all_reduce(torch.ones(9), group=alone)
        dist.reduce_scatter_single(torch.empty(3), torch.ones(6))
        dist.all_gather([torch.empty(2), torch.empty(2)], torch.ones(2))
        dist.all_to_all_single(torch.empty(4), torch.ones(4))
        dist.all_gather_object([None, None], "any")
        dist.barrier()

    return step, None


def _late():
    """Returns at once in the first process, in the other one LATE_US after that."""
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        store.add("first has come", 1)
    else:
        while store.add("first has come", 0) <= store.add("second has come", 0):
            time.sleep(1e-3)
        store.add("second has come", 1)
        time.sleep(LATE_US / 1e6)


STEPS = {
    "by_hand": by_hand,
    "dtensor": sharded,
    "fsdp2": fully_sharded,
    "ddp": replicated,
    "implicit": sequence_parallel,
}


def of_this_rank():
    return {name: {verb: _facts(make, verb) for verb in VERBS} for name, make in STEPS.items()}


def _facts(make, verb):
    step, _ = make()
    step()
    began_ns = time.time_ns()
    with VERBS[verb]() as trace:
        step()
    ended_ns = time.time_ns()
    entries = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(True, False))["entries"]
    return {
        "entries": [entry for entry in entries if began_ns <= entry["time_created_ns"] <= ended_ns],
        "span_ns": (began_ns, ended_ns),
        "frame": trace.collectives,
        "ops": trace.ops[["op", "group", "size_bytes"]],
        "meta": trace.meta,
    }


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return on_two_ranks(of_this_rank, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("step", STEPS)
def test_each_call_is_one_row_with_the_number_of_the_flight_recorder(ranks, step, verb):
    for facts in ranks:
        entries, frame = facts[step][verb]["entries"], facts[step][verb]["frame"]
        numbered = frame[~frame["is_p2p"]]
        assert len(entries) > 0
        assert numbered["seq"].tolist() == [entry["collective_seq_id"] for entry in entries]
        for side in ("input", "output"):
            assert [json.loads(text) for text in numbered[f"{side}_shapes"]] == [
                entry[f"{side}_sizes"] for entry in entries
            ]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("step", STEPS)
def test_bytes_are_those_of_the_tensors_that_go_in(ranks, step, verb):
    for facts in ranks:
        for call in facts[step][verb]["frame"].dropna(subset=["size_bytes"]).itertuples():
            sizes = zip(json.loads(call.input_shapes), json.loads(call.input_dtypes), strict=True)
            assert call.size_bytes == sum(prod(shape) * getattr(torch, dtype).itemsize for shape, dtype in sizes)


@pytest.mark.parametrize("verb", VERBS)
def test_each_kind_is_named_as_torch_distributed_names_it(ranks, verb):
    kinds = ["all_reduce", "all_reduce", "send", "recv", "broadcast", "all_reduce", "all_reduce", "reduce_scatter"]
    kinds += ["all_gather", "all_to_all", "all_gather", "all_gather", "barrier"]
    for rank, facts in enumerate(ranks):
        frame = facts["by_hand"][verb]["frame"]
        assert frame["op"].tolist() == kinds
        assert frame["peer"].dropna().tolist() == [1 - rank, 1 - rank, 1]
        alone = frame["group"] == "alone (1 rank)"
        assert frame["group_ranks"][alone].tolist() == [f"[{rank}]"]
        assert set(frame["group_ranks"][~alone]) == {"[0, 1]"}
        assert frame["input_shapes"][[0, 5]].tolist() == ["[[3, 2]]", "[[4], [6]]"]
        assert frame["size_bytes"].tolist()[:6] == [48, 20, 28, 28, 8, 40]
        assert frame["source"].str.contains("test_collectives.py").all()


@pytest.mark.parametrize("verb", VERBS)
def test_who_comes_first_waits_for_the_other(ranks, verb):
    first, last = (facts["by_hand"][verb]["frame"].iloc[0] for facts in ranks)
    came_us = [facts["by_hand"][verb]["meta"]["started_ns"] / 1e3 for facts in ranks]
    late_us = came_us[1] + last["start_us"] - came_us[0] - first["start_us"]
    # Nobody leaves before the last one has come; how late that is, a busy machine decides as well as the sleep.
    assert late_us > 0.5 * LATE_US
    assert first["wait_us"] > 0.9 * late_us
    assert first["duration_us"] > 0.9 * late_us
    assert last["wait_us"] < first["wait_us"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_bucket_is_of_the_module_that_reduces_it(ranks, verb):
    for facts in ranks:
        bucket = facts["ddp"][verb]["frame"].query("op == 'all_reduce'")
        assert bucket[["module", "phase"]].values.tolist() == [["", "backward"]]
        assert bucket["wait_us"].notna().tolist() == [verb == "optime"]


def test_a_redistribution_inside_of_an_op_is_a_call_of_that_op(ranks):
    for facts in ranks:
        frame, ops = (facts["implicit"]["optrace"][name] for name in ("frame", "ops"))
        assert ops["op"][frame["op_id"]].tolist() == ["aten.mm.default"]
        assert frame["op"].tolist() == facts["implicit"]["optime"]["frame"]["op"].tolist() == ["all_gather"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("step", STEPS)
def test_the_ops_of_a_call_have_its_group_and_bytes(ranks, step, verb):
    for facts in ranks:
        frame, ops = (facts[step][verb][name] for name in ("frame", "ops"))
        own = frame[~frame["op_id"].map(ops["op"]).str.startswith("aten.")]
        told = ops.loc[own["op_id"]]
        assert told["group"].tolist() == own["group"].tolist()
        assert told["size_bytes"].fillna(-1).tolist() == own["size_bytes"].fillna(-1).tolist()


@pytest.mark.parametrize("verb", VERBS)
def test_meta_says_which_process_this_is(ranks, verb):
    for rank, facts in enumerate(ranks):
        meta, (began_ns, ended_ns) = (facts["ddp"][verb][name] for name in ("meta", "span_ns"))
        assert (meta["rank"], meta["world_size"]) == (rank, 2)
        assert began_ns <= meta["started_ns"] <= ended_ns
        assert meta["host"]
        assert facts["ddp"][verb]["frame"]["rank"].eq(rank).all()


def test_without_a_process_group_there_is_no_frame():
    for verb in VERBS.values():
        with verb() as trace:
            nn.Linear(2, 2)(torch.ones(1, 2))
        assert "collectives" not in trace.frames
        assert "rank" not in trace.meta
