"""The recorders see a step on the simulated device as they see one on a real device."""

import torch

import nbkit
from tests.capture.models import MODELS, aten
from tests.simulated.steps import loss_of, trained


def test_optrace_records_a_step_and_changes_nothing():
    bare = trained("llama", "sim")
    with nbkit.optrace() as trace:
        recorded = trained("llama", "sim")
    rows = aten(trace)
    assert recorded == bare
    assert set(rows.loc[rows["op"].str.startswith("aten._scaled_dot_product_flash"), "device"]) == {"sim:0"}
    assert set(rows.loc[rows["phase"] == "backward", "device"]) == {"sim:0"}
    assert rows["forward_op_id"].notna().sum() > 100


def test_optrace_sees_which_tensors_share_memory(device):
    x = torch.ones(4, device="sim")
    with nbkit.optrace() as trace:
        y = x.view(2, 2)
        y.add_(1)
    tensors = trace.tensors
    assert tensors["storage_id"].tolist() == [0] * 4
    assert tensors["tensor_id"].tolist() == [0, 1, 1, 1]
    assert set(tensors["device"]) == {"sim:0"}


def test_optime_times_a_step():
    model = MODELS["mlp"]().to("sim")
    with nbkit.optime() as timing:
        loss_of(model, "mlp", "sim").backward()
    # Each of the three layers: the op of the device, and the CPU's below it.
    assert (timing.ops["op"] == "aten.addmm.default").sum() == 6
    assert timing.ops["self_time_us"].sum() > 0
