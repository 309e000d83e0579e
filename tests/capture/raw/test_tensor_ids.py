"""Tests dataflow ids: never reused when memory is, the same for the same tensor, shared storage for views; names."""

from time import process_time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.models import aten, record, tensor_rows


def ids(trace, packet, role="output", column="tensor_id"):
    return tensor_rows(trace, packet, role)[column].tolist()


@pytest.mark.parametrize(
    ("make", "packet"),
    [
        (lambda i: torch.ones(1000) * 2, "aten.mul"),
        (lambda i: torch.from_numpy(np.ones(1000, np.float32)).exp(), "aten.exp"),
        (lambda i: torch.tensor([float(i)] * 50).exp(), "aten.exp"),
        (lambda i: torch.frombuffer(bytearray(4000), dtype=torch.float32).exp(), "aten.exp"),
        (lambda i: torch.empty(1000).fill_(i).exp(), "aten.exp"),
    ],
)
def test_each_round_of_a_loop_has_new_ids_though_memory_is_reused(make, packet):
    def step():
        # How soon the allocator gives memory again depends on what the tests before have left scattered.
        while len(addresses) < 40 or len(set(addresses)) == len(addresses):
            addresses.append(make(len(addresses)).data_ptr())

    addresses = []
    trace = record(step)
    for role in ("input", "output"):
        assert len(set(ids(trace, packet, role))) == len(addresses)
        assert len(set(ids(trace, packet, role, "storage_id"))) == len(addresses)


def test_ids_are_dense():
    trace = record(lambda: F.relu(torch.ones(3)).view(3, 1).sum())
    assert sorted(trace.tensors["tensor_id"].unique()) == list(range(trace.tensors["tensor_id"].nunique()))
    assert sorted(trace.tensors["storage_id"].unique()) == list(range(trace.tensors["storage_id"].nunique()))


def test_an_output_is_the_input_of_what_uses_it():
    trace = record(lambda: torch.ones(3).exp().neg())
    assert ids(trace, "aten.ones") == ids(trace, "aten.exp", "input")
    assert ids(trace, "aten.exp") == ids(trace, "aten.neg", "input")


@pytest.mark.parametrize("values", [None, "stats"])  # these the recorder in Python reads
def test_views_share_the_storage_and_in_place_ops_keep_the_tensor(values):
    def step():
        x = torch.zeros(4)
        x.view(2, 2).t()
        x[1:3].add_(1)
        x.mul_(2)

    trace = record(step, values=values)
    assert set(trace.tensors["storage_id"]) == {0}
    assert ids(trace, "aten.add_") == ids(trace, "aten.add_", "input") == ids(trace, "aten.slice")
    assert ids(trace, "aten.mul_") == ids(trace, "aten.zeros") != ids(trace, "aten.add_")
    assert len(set(trace.tensors["tensor_id"])) == 4


def test_what_autograd_saved_keeps_its_id_in_the_backward_pass():
    x = torch.randn(3, requires_grad=True)
    trace = record(lambda: (x.exp() * 2).sin().sum().backward())
    assert ids(trace, "aten.cos", "input") == ids(trace, "aten.mul")[:1]  # sin's input
    # An output is saved as a detached alias, by an op that is recorded: the memory is the same.
    assert ids(trace, "aten.exp", "output", "storage_id")[0] in ids(trace, "aten.mul", "input", "storage_id")[-2:]


def test_out_arguments_are_outputs_only_and_keep_their_tensor():
    """Defect B2: out= and in-place writes reach the caller."""
    x, y = torch.zeros(3), torch.ones(3)

    def step():
        torch.exp(x, out=x)
        torch.add(y, y, out=x)

    trace = record(step)
    assert x.tolist() == [2, 2, 2]
    assert ids(trace, "aten.exp") == ids(trace, "aten.exp", "input") == ids(trace, "aten.add")
    assert tensor_rows(trace, "aten.add", "input")["position"].tolist() == [0, 1]


def test_lists_and_structseqs_are_flattened_in_order():
    """Defects B1, B6: results keep their type."""
    x, y = torch.arange(12.0).view(3, 4), []
    trace = record(lambda: y.extend([x.sort(), x.chunk(2, 1), torch.stack([x, x, x]), torch.add(x, x)]))
    assert type(y[0]).__name__ == "sort"
    assert y[0].values.shape == (3, 4)
    assert [len(tensor_rows(trace, f"aten.{name}", "input")) for name in ("stack", "add")] == [3, 2]
    assert len(set(ids(trace, "aten.stack", "input"))) == 1
    assert tensor_rows(trace, "aten.sort", "output")["dtype"].tolist() == ["float32", "int64"]
    assert tensor_rows(trace, "aten.split", "output")["position"].tolist() == [0, 1]
    assert tensor_rows(trace, "aten.split", "output")["shape"].tolist() == ["[3, 2]"] * 2


def test_foreach_ops_name_what_they_write():
    tensors = [torch.ones(2), torch.ones(3)]
    trace = record(lambda: torch._foreach_add_(tensors, 1.0), values="stats")
    inputs, outputs = (tensor_rows(trace, "aten._foreach_add_", role) for role in ("input", "output"))
    assert outputs["tensor_id"].tolist() == inputs["tensor_id"].tolist()
    assert inputs["mean"].tolist() == [1.0, 1.0]
    assert outputs["mean"].tolist() == [2.0, 2.0]


def test_parameter_and_buffer_names_stand_at_every_use():
    norm = nn.BatchNorm1d(2)
    trace = record(lambda: norm(torch.randn(3, 2)).sum().backward())
    inputs = tensor_rows(trace, "aten.native_batch_norm", "input")
    assert inputs["name"].fillna("-").tolist() == ["-", "weight", "bias", "running_mean", "running_var"]
    backward = tensor_rows(trace, "aten.native_batch_norm_backward", "input")["name"].dropna().tolist()
    assert backward == ["weight", "running_mean", "running_var"]


def test_a_parameter_keeps_its_id_over_steps():
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def step():
        for _ in range(3):
            optimizer.zero_grad()
            layer(x).sum().backward()
            optimizer.step()

    trace = record(step)
    weights = trace.tensors[trace.tensors["name"] == "weight"]
    assert weights.loc[weights["shape"] == "[2, 2]", "storage_id"].nunique() == 1
    assert tensor_rows(trace, "aten.t", "input").query("name == 'weight'")["tensor_id"].nunique() == 1
    assert len(aten(trace, "aten.addmm")) == 3


def test_metadata_changed_in_place_is_read_anew():
    def step():
        x = torch.zeros(2, 3)
        x.t_()
        x.exp()
        x.resize_(4)
        x.exp()
        x.data = torch.ones(5, dtype=torch.float64)
        x.exp()

    trace = record(step)
    shown = tensor_rows(trace, "aten.exp", "input")
    assert shown["shape"].tolist() == ["[3, 2]", "[4]", "[5]"]
    assert shown["stride"].tolist() == ["[1, 3]", "[1]", "[1]"]
    assert shown["dtype"].tolist() == ["float32", "float32", "float64"]


def test_storages_are_not_walked():
    """Defect B51: a storage is a leaf, however large."""
    x = torch.ones(2**18)
    started = process_time()
    trace = record(lambda: (x.untyped_storage(), x.storage_offset(), x.dtype, x.shape, x.exp()))
    assert process_time() - started < 0.5
    assert len(trace.tensors) == 2


def test_keyword_tensors_are_recorded():
    """Defects B42, B43."""
    trace = record(lambda: F.linear(input=torch.ones(2, 3), weight=torch.ones(4, 3), bias=torch.ones(4)))
    assert tensor_rows(trace, "aten.addmm", "input")["shape"].tolist() == ["[4]", "[2, 3]", "[3, 4]"]
    trace = record(lambda: torch.rand_like(torch.ones(2), generator=None))
    assert tensor_rows(trace, "aten.rand_like", "input")["shape"].tolist() == ["[2]"]


def test_a_tensor_without_storage_keeps_its_id():
    trace = record(lambda: torch.eye(2).to_sparse().neg().abs())
    assert ids(trace, "aten.neg") == ids(trace, "aten.abs", "input")
    assert len({*ids(trace, "aten.neg", "input"), *ids(trace, "aten.neg"), *ids(trace, "aten.abs")}) == 3
