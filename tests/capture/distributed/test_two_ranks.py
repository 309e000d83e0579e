"""Tests each verb on two processes that train together: DTensor, FSDP2 and DistributedDataParallel over gloo."""

import pytest
import torch
import torch.distributed as dist

import nbkit
from nbkit.capture.raw.shards import LOCAL, local_shard
from tests.capture.distributed.ranks import on_two_ranks
from tests.capture.distributed.steps import VERBS, bare, fully_sharded, recorded, replicated, sharded

pytestmark = pytest.mark.full  # two processes, which import what FSDP needs
STEPS = {"dtensor": sharded, "fsdp2": fully_sharded, "ddp": replicated}
LEFT_OUT = "collectives: their result depends on other processes"


def facts_of_this_rank():
    torch.use_deterministic_algorithms(True)  # memory from empty() holds NaN then
    return {name: _facts(make) for name, make in STEPS.items()} | {"alone": _read_alone()}


def _facts(make):
    facts = {"bare": bare(make)}
    for verb in VERBS:
        trace, left, _ = recorded(make, verb, **({"keep_ops": "aten.*", "keep": 999} if verb == "opdiff" else {}))
        ops = trace.ops[trace.ops["level"] == "aten"]["op"]
        facts[verb] = {
            "is_same": left == facts["bare"],
            "skipped": trace.meta["skipped"],
            "notes": trace.meta.get("notes", []),
            "collectives": sorted({op for op in ops if op.startswith(("c10d.", "_c10d_functional."))}),
            "modules": set(trace.ops["module"].dropna()),
            "phases": set(trace.ops["phase"]),
        }
        if verb == "optrace":
            named = trace.tensors.dropna(subset=["name"]).drop_duplicates("name").set_index("name")
            facts["shapes"], facts["size_bytes"] = named["shape"].to_dict(), named["size_bytes"].to_dict()
            facts["params"] = int(trace.modules["params"].iloc[0])
        if verb == "opdiff":
            facts["statuses"] = trace.diffs["status"].value_counts().to_dict()
            facts["kept"] = [(call.op, len(call.results)) for call in trace.captured.values()]
            facts["compared"] = trace.diffs["op_id"].tolist()
        if verb == "opcheck":
            facts["findings"], facts["checked"] = len(trace.findings), trace.meta["checked_tensors"]
    return facts


def _read_alone():
    """Reads values on one rank alone: a question to a whole DTensor would wait for the other rank forever."""
    _, model = sharded()
    if dist.get_rank() == 1:
        return None
    with nbkit.optrace(values="stats") as trace:
        model.up.weight.detach()
    return trace.tensors["mean"].iloc[0], float(local_shard(model.up.weight.detach()).double().mean())


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return on_two_ranks(facts_of_this_rank, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("step", STEPS)
def test_the_step_computes_the_same_bits_as_bare(ranks, step, verb):
    assert [facts[step][verb]["is_same"] for facts in ranks] == [True, True]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("step", "collectives"),
    [
        ("dtensor", {"_c10d_functional.all_reduce.default"}),
        ("fsdp2", {"c10d._allgather_base_.default", "c10d._reduce_scatter_base_.default"}),
        ("ddp", {"c10d.allreduce_.default"}),
    ],
)
def test_modules_phases_and_collectives_are_rows(ranks, step, collectives, verb):
    for facts in ranks:
        assert collectives <= set(facts[step][verb]["collectives"])
        assert any(path.endswith("down") for path in facts[step][verb]["modules"])
        assert {"forward", "backward", "optimizer"} <= facts[step][verb]["phases"]


@pytest.mark.parametrize("step", STEPS)
def test_all_ops_are_right_and_collectives_are_left_out_in_words(ranks, step):
    for facts in ranks:
        assert facts[step]["statuses"].keys() <= {"ok", "skipped"}
        assert facts[step]["statuses"]["ok"] > 15
        assert facts[step]["findings"] == 0
        assert facts[step]["checked"] > 15
        assert facts[step]["opdiff"]["skipped"][f"not compared: {LEFT_OUT}"] > 0
        assert facts[step]["opcheck"]["skipped"][f"not looked at: {LEFT_OUT}"] > 0
        assert not [reason for reason in facts[step]["opcheck"]["skipped"] if "could not" in reason]


def test_a_dtensor_is_told_by_its_shard(ranks):
    for facts in ranks:
        shapes = {"up.weight": "[8, 8]", "up.bias": "[8]", "down.weight": "[8, 8]", "down.bias": "[8]"}
        assert facts["dtensor"]["shapes"] == shapes
        assert facts["dtensor"]["size_bytes"]["up.weight"] == 256
        assert facts["dtensor"]["params"] == 8 * 16 + 16 + 16 * 8 + 8
        assert facts["dtensor"]["optrace"]["notes"] == facts["fsdp2"]["opdiff"]["notes"] == [LOCAL]
        assert facts["ddp"]["opdiff"]["notes"] == []


def test_of_several_ops_on_a_shard_one_call_is_kept_whole(ranks):
    for facts in ranks:
        assert len(facts["dtensor"]["compared"]) > len(set(facts["dtensor"]["compared"]))
        assert {results for _, results in facts["dtensor"]["kept"]} == {1}


def test_one_rank_can_read_its_shard_alone(ranks):
    read, expected = ranks[0]["alone"]
    assert read == pytest.approx(expected)
