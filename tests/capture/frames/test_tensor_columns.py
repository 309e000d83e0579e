"""Tests tensor records as columns: identity and names across autograd's own wrappers."""

import torch

from nbkit.capture.frames.tensor_columns import TensorColumns
from nbkit.capture.frames.tensor_rows import tensor_ids
from nbkit.capture.raw.tensor_registry import TensorRegistry


def test_a_tensor_met_again_is_the_last_one_of_its_memory_and_geometry():
    registry, x = TensorRegistry(), torch.ones(2, 3)
    same, view, other = x.detach(), x.t(), torch.ones(2, 3)
    for tensor, is_fresh in ((x, True), (same, False), (view, True), (other, False), (x.view(2, 3), True)):
        registry.learn(tensor, is_fresh)
    registry.learn(x.detach(), False)
    assert tensor_ids(TensorColumns(registry)).tolist() == [0, 0, 1, 2, 3, 3]


def test_records_of_a_tensor_are_those_of_its_memory_and_geometry():
    registry, x = TensorRegistry(), torch.ones(2, 3)
    for tensor in (x.t(), x, torch.ones(2, 3), x.detach()):
        registry.learn(tensor, False)
    tensors = TensorColumns(registry)
    assert tensors.records_of([x]) == [[1, 3]]
    assert tensors.records_of([x.t()]) == [[0]]
    assert tensors.records_of([torch.ones(2, 3)]) == [[]]


def test_a_layout_without_storage_keeps_its_device_and_bytes():
    registry, dense, sparse = TensorRegistry(), torch.ones(3), torch.eye(3).to_sparse()
    registry.number(dense)
    registry.number(sparse)
    tensors = TensorColumns(registry)
    assert tensors.nbytes.tolist() == [-1, 3 * (2 * 8 + 4)]
    assert (tensors.devices, tensors.device.tolist()) == ([torch.device("cpu")], [0, 0])
    assert tensors.records_of([sparse]) == [[]]
