"""One tensor has one number, whichever recorder meets it, and is not kept alive for it."""

import weakref

import numpy as np
import pytest
import torch

import nbkit
from nbkit.capture.frames.tensor_columns import TensorColumns
from nbkit.capture.native.library import library
from nbkit.capture.raw.native_registry import NativeRegistry


@pytest.fixture
def registry():
    return NativeRegistry(library())


def test_a_tensor_keeps_its_number(registry):
    x, y = torch.ones(2, 3), torch.nn.Parameter(torch.ones(2))
    assert [registry.number(x), registry.number(y), registry.number(x, fresh=True), registry.learn(y, False)] == [
        0, 1, 0, 1,
    ]  # fmt: skip


def test_a_forgotten_tensor_is_read_anew(registry):
    x = torch.ones(2, 3)
    assert registry.number(x) == 0
    x.t_()
    registry.forget(x)
    assert registry.number(x) == 1
    assert [(shape, stride) for shape, stride, *_ in registry.geometries] == [((2, 3), (3, 1)), ((3, 2), (1, 3))]


def test_plain_and_other_tensors_share_storages_and_geometries(registry):
    class Tagged(torch.Tensor):
        pass

    x = torch.ones(2, 3)
    registry.number(x)
    registry.number(x.as_subclass(Tagged))
    columns = TensorColumns(registry)
    assert columns.storage.tolist() == columns.geometry.tolist() == [0, 0]
    assert columns.records_of([x]) == [[0, 1]]
    assert columns.records_of([torch.ones(2, 3)]) == [[]]


def test_a_dead_tensor_leaves_its_number(registry):
    numbers = {registry.number(torch.ones(index % 7 + 1), fresh=True) for index in range(5000)}
    assert len(numbers) == 5000
    assert registry.survivors() == {}


def test_survivors_say_whether_they_need_a_gradient(registry):
    x = torch.ones(2)
    y, z = torch.ones(2, requires_grad=True) * 2, torch.eye(2).to_sparse()
    assert [registry.number(tensor) for tensor in (x, y, z)] == [0, 1, 2]
    assert registry.survivors() == {0: False, 1: True, 2: False}


def test_data_dies_with_the_last_reference(registry):
    array = np.ones((64, 64), np.float32)
    x = torch.from_numpy(array)
    # The array is what holds the memory: it dies when the storage is freed, which a mere tensor object does not show.
    reference, memory = weakref.ref(x), weakref.ref(array)
    del array
    registry.number(x)
    assert memory() is not None
    del x
    assert (reference(), memory()) == (None, None)


def test_a_recorded_parameter_can_be_swapped_and_moved():
    model, other = torch.nn.Linear(3, 3), torch.nn.Parameter(torch.zeros(3, 3))
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with nbkit.optrace() as trace:
            model(torch.ones(1, 3)).sum().backward()
            model.zero_grad()
            torch.utils.swap_tensors(model.weight, other)
            model.double()(torch.ones(1, 3, dtype=torch.float64))
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert trace.complete
    assert model.weight.dtype == torch.float64
    assert model.weight.count_nonzero() == 0
