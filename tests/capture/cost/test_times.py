"""opcost with a device says how long each op takes there, collectives too, and which device it means."""

import json
import subprocess

import pytest
import torch

import nbkit
from nbkit.capture.cost.op_costs import communication_bytes
from nbkit.errors import OptionError
from tests.processes import PYTHON

COLLECTIVES = """
import json, sys, warnings
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.testing._internal.distributed.fake_pg import FakeStore
import nbkit

warnings.simplefilter("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
pairs = dist.new_group([0, 1])
part, whole, world = torch.ones(1000), torch.ones(8000), dist.group.WORLD

def step():
    dist.all_reduce(part)
    dist.all_reduce(part, group=pairs)
    dist.all_gather_into_tensor(torch.empty(8000), part)
    dist.all_gather([torch.empty(1000) for _ in range(8)], part)
    dist.reduce_scatter_tensor(torch.empty(1000), whole)
    dist.all_to_all_single(torch.empty(8000), whole)
    dist.broadcast(part, 0)
    functional.all_reduce(part, "sum", world).add(1)
    functional.all_gather_tensor(part, 0, world)
    functional.reduce_scatter_tensor(whole, "sum", 0, world)
    functional.all_to_all_single(whole, None, None, world)

trace = nbkit.opcost(device=nbkit.Device("wire", {"float32": 1e9}, 1e9, 1.0, link_bytes_per_s=1e9)).run(step)
costs = trace.costs[trace.costs["communication_bytes"].notna()]
print(json.dumps([costs["communication_bytes"].tolist(), costs["time_us"].tolist(), costs["bound"].unique().tolist(),
                  trace.meta["unknown_flops"]]))
"""


def step():
    torch.nn.Linear(512, 512)(torch.ones(64, 512)).sum().backward()


def test_a_device_gives_times_and_none_gives_none():
    trace = nbkit.opcost(device="H100").run(step)
    costs = trace.costs
    # All are too small to take longer than their launch.
    assert costs["time_us"].sum() == pytest.approx(5.0 * len(costs), abs=1.0)
    assert {*costs["bound"]} == {"launch"}
    assert trace.meta["cost_device"]["name"] == "H100" and json.dumps(trace.meta["cost_device"])
    plain = nbkit.opcost().run(step)
    assert plain.costs[["time_us", "bound", "communication_bytes"]].isna().all(axis=None)
    assert "cost_device" not in plain.meta


def test_products_run_in_tf32_where_the_user_allows_it():
    before = torch.get_float32_matmul_precision()
    left = torch.ones(8192, 8192)
    times = []
    try:
        for precision in ("highest", "high"):
            torch.set_float32_matmul_precision(precision)
            times.append(nbkit.opcost(device="H100").run(lambda: torch.mm(left, left)).costs["time_us"].iloc[-1])
    finally:
        torch.set_float32_matmul_precision(before)
    assert times == pytest.approx([5.0 + 2 * 8192**3 / 67e6, 5.0 + 2 * 8192**3 / 494.5e6])


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("H10", r"The device 'H10' is not known .*; did you mean 'H100'"),
        ("tpu", r"The device 'tpu' is not known .*; known are A100 40GB, .*, this machine\."),
        (7, r"device must be a name such as 'H100' .*, got 7"),
        (torch.device("cpu"), r"or a nbkit.Device, got device"),
    ],
)
def test_another_device_is_refused(device, message):
    with pytest.raises(OptionError, match=message):
        nbkit.opcost(device=device)


def test_a_collective_sends_what_a_ring_sends():
    """Of n processes an all-reduce sends 2 (n - 1) / n of the tensor, a gather and a scatter half of that."""
    done = subprocess.run([*PYTHON, "-c", COLLECTIVES], capture_output=True, text=True, check=True)
    sent, times, bounds, unknown = json.loads(done.stdout.splitlines()[-1])
    whole = 4 * 8000 * 7 // 8
    assert sent == [7000, 4000, *[whole] * 4, 4000, 7000, *[whole] * 3]
    assert times == pytest.approx([1.0 + sent[0] / 1e3, *(size / 1e3 for size in sent[1:])])  # launched meanwhile
    assert bounds == ["communication"] and unknown == {}


def test_an_op_that_is_no_collective_sends_nothing():
    assert communication_bytes(torch.ops.aten.add.Tensor, (torch.ones(2), torch.ones(2)), {}, torch.ones(2)) is None
