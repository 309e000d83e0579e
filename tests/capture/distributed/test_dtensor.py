"""Tests recordings of a tensor-parallel step: what is told of a DTensor is what its local shard is."""

import json

import pytest
import torch
import torch.distributed as dist

import nbkit
from nbkit.capture.raw.shards import LOCAL, dtensor_type
from nbkit.capture.subnormals import _worst
from tests.capture.diff.planted import scaled, with_fault, wrong
from tests.capture.diff.shadow.runs import against, shadowed
from tests.capture.distributed.steps import VERBS, bare, recorded, sharded
from tests.capture.models import aten, record, tensor_rows

STATISTICS = ["mean", "std", "min", "max", "norm", "nan_count", "inf_count"]


@pytest.fixture(params=["native", "python"])
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def shard(values):
    """Returns these values as a DTensor that is spread over one process."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    return distribute_tensor(torch.tensor(values), init_device_mesh("cpu", (1,)), [Shard(0)])


@pytest.fixture(scope="module", autouse=True)
def one_process():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("verb", VERBS)
def test_the_step_computes_the_same_bits(verb):
    assert recorded(sharded, verb)[1] == bare(sharded)


def test_every_op_on_shards_is_compared_and_right(recorder):
    trace, _, _ = recorded(sharded, "opdiff")
    assert trace.diffs["status"].unique().tolist() == ["ok"]
    products = trace.diffs[trace.diffs["op"].isin(["aten.addmm.default", "aten.mm.default"])]
    assert len(products) == len(aten(trace, "aten.addmm")) + len(aten(trace, "aten.mm")) == 5
    assert not [reason for reason in trace.meta["skipped"] if "could not" in reason or "fake" in reason]
    assert trace.meta["notes"] == [LOCAL]


def test_the_whole_step_is_followed_by_its_shadow():
    wanted = bare(sharded)
    trace, left, _ = recorded(sharded, "opdiff", against="cpu:float64")
    assert left == wanted
    assert trace.meta["first_divergence"] is None
    assert trace.meta["followed_ops"] > 40
    of_modules, left, _ = recorded(sharded, "opdiff", level="module", against="cpu:float64")
    assert left == wanted and of_modules.complete


def test_the_shadow_begins_anew_at_a_collective():
    x = torch.rand(4)
    with shadowed() as shadow_of:
        y = x.exp()
        before = shadow_of(y)
        dist.all_reduce(y)
        after = shadow_of(y)
    assert torch.equal(before, x.double().exp()) and torch.equal(after, y.double())
    trace = against(lambda: dist.all_reduce(x.exp()))
    assert trace.meta["skipped"]["shadow began anew: collectives"] == 1


def test_a_wrong_kernel_below_a_dtensor_is_found(recorder):
    step, _ = sharded()
    step()
    trace = with_fault(step, "aten.mm.default", scaled, call=1)
    assert wrong(trace)[["op", "status", "shape"]].to_numpy().tolist() == [["aten.mm.default", "mismatch", "[8, 16]"]]


def test_what_torch_asks_of_fake_tensors_is_not_counted(recorder):
    for verb in ("opcheck", "opdiff"):
        x = shard([[1.0, 2.0, 3.0]] * (2 + len(verb)))  # of a shape that torch has not met
        with VERBS[verb]() as trace:
            x.sin().sum(0)
        assert trace.meta["skipped"] == {}


@pytest.mark.parametrize("verb", ["opfallback", "opstable", "opcapture"])
def test_tools_for_ops_take_those_on_shards_alone(verb, tmp_path):
    options = {"folder": tmp_path / "calls"} if verb == "opcapture" else {}
    x = shard([[1.0, 2.0, 3.0]] * (9 + len(verb)))  # of a shape that torch has not met
    with getattr(nbkit, verb)(**options) as trace:
        out = x.sin().sum(0)
    frame = {"opfallback": "replaced", "opstable": "stability", "opcapture": "captures"}[verb]
    assert trace.frames[frame]["op"].tolist() == ["aten.sin.default", "aten.sum.dim_IntList"]
    assert trace.meta["skipped"] == {}
    assert torch.equal(out.full_tensor(), x.full_tensor().sin().sum(0))


def test_a_nan_of_one_shard_is_found_at_its_op(recorder):
    x = shard([[4.0, -1.0], [1.0, 9.0]])
    with nbkit.opcheck() as trace:
        (x.sqrt() + 1).sum()
    assert trace.findings[["op", "rule"]].to_numpy().tolist() == [["aten.sqrt.default", "nan"]]
    assert json.loads(trace.findings["evidence"].item())["nan_count"] == 1
    assert trace.meta["propagated_ops"] == 2
    assert not [reason for reason in trace.meta["skipped"] if "could not" in reason]


def test_opcheck_stops_at_an_op_on_shards(recorder):
    x = shard([-1.0])
    with (
        pytest.raises(nbkit.NonFiniteError, match="aten.sqrt.default: its only element is NaN"),
        nbkit.opcheck(stop=True),
    ):
        x.sqrt()


def test_statistics_are_those_of_the_shard():
    x = shard([[1.0, -2.0], [3.0, 6.0]])
    trace = record(lambda: x * 2, values="stats")
    result = tensor_rows(trace, "aten.mul", "output").iloc[0]
    assert (result["mean"], result["min"], result["max"], result["nan_count"]) == (4.0, -4.0, 12.0, 0)
    whole, _, _ = recorded(sharded, "optrace", values="stats")
    assert whole.tensors[STATISTICS].notna().all(axis=None)


def test_without_a_dtensor_nothing_is_said_of_shards():
    assert record(lambda: torch.ones(2) + 1).meta["notes"] == []
    assert dtensor_type().__name__ == "DTensor"


def test_the_state_of_an_optimizer_is_looked_at_in_this_process_alone():
    optimizer = torch.optim.Adam([torch.ones(4, requires_grad=True)])
    optimizer.state["of a parameter"] = {"exp_avg_sq": shard([1e-40, 1.0, 1.0, 1e-40])}
    name, fraction, values = _worst(optimizer)
    assert (name, fraction) == ("exp_avg_sq", 0.5)
    assert type(values) is torch.Tensor  # an op on a DTensor may wait for processes that run none
